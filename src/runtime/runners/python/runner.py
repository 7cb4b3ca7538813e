"""The program that serves the functions of a Python entry: imports AFTERWORD_ENTRY, then listens on
AFTERWORD_SOCKET for `POST /<function>`. On SIGTERM it lets the running calls end and exits 0.

Standard library alone, Python 3.9 or newer. All modules of its own are in one package, so that the entry's
imports cannot meet them by chance.
"""

import os
import sys

if __name__ == "__main__":
    entry = os.environ["AFTERWORD_ENTRY"]
    home = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if path != home]

    # Nothing is written beside the package: it may be where nothing can be.
    writes_no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path[:] = [home, *others]
    from afterword_runner.main import main

    sys.path[:] = [os.path.dirname(entry), *others]
    sys.dont_write_bytecode = writes_no_bytecode
    main(os.environ["AFTERWORD_SOCKET"], entry)
