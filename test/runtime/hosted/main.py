"""Functions that tell of their process, or end it; main.ts has the same."""

import os
import signal
import subprocess
import time


def pid():
    return os.getpid()


def cwd():
    return os.getcwd()


def env():
    return dict(os.environ)


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


def crashMidway():
    yield "first"
    crash()


def hold(folder, name):
    """Tells that it runs, and returns when the file `<name>.go` is there."""
    with open(os.path.join(folder, name), "w") as file:
        file.write(str(os.getpid()))
    while not os.path.exists(os.path.join(folder, f"{name}.go")):
        time.sleep(0.005)
    return {"name": name, "pid": os.getpid()}


def beat(folder, name):
    """Is never silent until then."""
    while not os.path.exists(os.path.join(folder, f"{name}.go")):
        yield os.getpid()
        time.sleep(0.02)
    yield "done"


def leave():
    """Leaves a process behind."""
    return subprocess.Popen(["sleep", "300"]).pid


def say(text):
    print(text)


def burn(ms):
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        pass
    return ms
