// An ONNX model of one node, as the bytes of its protobuf message (onnx.proto3 of onnx/onnx has the field numbers; the
// wire format is protobuf's: a key of field number and wire type, then a varint, four bytes, or a length and bytes).

const utf8 = new TextEncoder();

function varint(value) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    if (rest <= 0x7fn) return bytes;
  }
}
const integer = (field, value) => [...varint(field << 3), ...varint(value)];
const float = (field, value) => [...varint((field << 3) | 5), ...new Uint8Array(new Float32Array([value]).buffer)];
const bytes = (field, content) => [...varint((field << 3) | 2), ...varint(content.length), ...content];
const text = (field, string) => bytes(field, utf8.encode(string));
const message = (field, ...parts) => bytes(field, parts.flat());

export const FLOAT = 1, INT32 = 6;  // TensorProto.DataType

// A dimension is a length, or the name of one that is free.
const dimension = length => message(1, typeof length === 'string' ? text(2, length) : integer(1, length));
const value = (field, {name, type, shape}) =>
    message(field, text(1, name), message(2, message(1, integer(1, type), message(2, ...shape.map(dimension)))));
const attribute = ([name, {i, f}]) =>
    message(5, text(1, name), ...(f === undefined ? [integer(3, i), integer(20, 2)] : [float(2, f), integer(20, 1)]));

/// A model whose graph is one node of the domain com.microsoft. Inputs and outputs: {name, type, shape}, in the order of
/// the operator's; attributes: {name: {i: integer} or {f: float}}.
export function modelOf(operator, inputs, outputs, attributes) {
  const node = message(1, ...inputs.map(one => text(1, one.name)), ...outputs.map(one => text(2, one.name)),
                       text(4, operator), ...Object.entries(attributes).map(attribute), text(7, 'com.microsoft'));
  const graph = message(7, node, text(2, operator), ...inputs.map(one => value(11, one)),
                        ...outputs.map(one => value(12, one)));
  const opset = (domain, version) => message(8, text(1, domain), integer(2, version));
  return Uint8Array.from([...integer(1, 8), ...opset('', 17), ...opset('com.microsoft', 1), ...graph]);
}
