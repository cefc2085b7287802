"""A command of a chain: hands its streams, arguments and environment over to the zygote, and exits as the command did."""

import json
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["HOPS_ZYGOTE"])
message = json.dumps({"arguments": sys.argv[1:], "env": dict(os.environ)}).encode()
socket.send_fds(connection, [len(message).to_bytes(4)], [0, 1, 2])
connection.sendall(message)
for each in (0, 1, 2):
    os.close(each)
answer = connection.recv(1)
os._exit(answer[0] if answer else 1)
