"""An app of FastAPI as it always is. Afterword starts it and tells it the port to listen on."""

import os

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Order(BaseModel):
    item: str
    count: int = 1


@app.get("/health")
def health() -> dict[str, bool]:
    return {"ok": True}


@app.post("/orders", status_code=201)
async def order(order: Order) -> dict[str, str]:
    return {"ordered": f"{order.count} of {order.item}"}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "9000")), access_log=False)
