"""model-server.py MIB PORT: an HTTP server with MIB of tensors, unaware of Headroom. Each answer is the sum of
a product of some of them, so that it uses the GPU and depends on the data."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch

mib, port = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(7)
tensors = [torch.randn(64 * 2**20 // 4, device="cuda") for _ in range(mib // 64)]
square = torch.randn(2048, 2048, device="cuda")
torch.cuda.synchronize()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        product = float((square @ square).double().sum()) + sum(float(each[0]) for each in tensors)
        body = f"{product!r}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", port), Handler).serve_forever()
