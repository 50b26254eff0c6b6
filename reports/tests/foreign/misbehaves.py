"""Serves a store of the examples, and misbehaves once: `misbehaves.py AT HOW COMMAND...` at request AT, from 0."""
import os, signal, subprocess, sys, time

at, how = int(sys.argv[1]), sys.argv[2]
store = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for number, line in enumerate(sys.stdin):
    if number == at and how == "dies": os.kill(os.getpid(), signal.SIGKILL)
    if number == at and how == "ends": sys.exit(3)
    if number == at and how == "leaves":  # a process behind it, which holds its output
        subprocess.Popen(["sleep", "60"])
        sys.exit(4)
    if number == at and how == "hangs": time.sleep(600)
    if number == at and how == "garbles": print("Traceback (most recent call last):", flush=True)
    store.stdin.write(line)
    store.stdin.flush()
    answer = store.stdout.readline()
    if number == at and how == "repeats": answer += answer
    if number == at and how == "nul": answer = answer.replace("\n", "\0\n")
    if number == at and how == "doubles": answer = answer.replace("{", '{"id": 0, ', 1)
    print(answer, end="", flush=True)
