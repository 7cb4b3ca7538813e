"""A receiver with nothing but the standard library: verifies, remembers what it has seen, prints, answers."""

import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("WEBHOOK_SECRET", "demo-webhook-secret")

# A real receiver keeps these in its database, in one transaction with the work.
seen: set[str] = set()


def is_genuine(headers, body: bytes, secret: str) -> bool:
    request_id = headers.get("X-Request-Id", "")
    timestamp = headers.get("X-Service-Webhook-Timestamp", "")
    received = headers.get("X-Service-Webhook-Signature", "").split(",", 1)[-1]
    content = f"{request_id}.{timestamp}.".encode() + body
    expected = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), received.encode())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.receive(body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self, body: bytes) -> int:
        """The status to answer with."""
        if not is_genuine(self.headers, body, SECRET):
            print("refused", flush=True)
            return 401
        delivery = json.loads(body)
        what = "again" if delivery["run_id"] in seen else "new"
        seen.add(delivery["run_id"])
        outcome = json.dumps(delivery.get("error", delivery.get("result")))
        print(delivery["run_id"], what, delivery["app"], delivery["status_code"], outcome, flush=True)
        return 200

    def log_message(self, *_) -> None:
        """Deliveries are printed already."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
    print(f"receiving on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
