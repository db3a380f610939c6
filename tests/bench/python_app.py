# SPDX-License-Identifier: MIT
"""The agents' notebook as one writes it in Python: FastAPI, uvicorn, and the official asynchronous clients of MongoDB and
Redis, or sqlite. The benchmark's baseline: it keeps what the gateway keeps of a page (content, summary, metadata, light history,
a reference in the day's list and one for search), one process, and reads before it writes where a client does.

    python_app.py PORT sqlite FILE
    python_app.py PORT mongo MONGO-URI REDIS-URI DATABASE
"""
import json
import sys
import uuid
from datetime import date, datetime, timezone

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

SUMMARY_CHARS = 200
DAYS_KEPT_BY = "bench:daily"


class Create(BaseModel):
    collection: str
    title: str
    content: str
    tags: list[str] = []
    summary: str | None = None


class Entry(BaseModel):
    collection: str
    notebook_id: str


class Update(Entry):
    content: str | None = None
    title: str | None = None
    tags: list[str] | None = None
    status: str | None = None


class Search(BaseModel):
    query: str
    collection: str | None = None
    limit: int = 10


def short(text):
    return text[:SUMMARY_CHARS].strip() + ("..." if len(text) > SUMMARY_CHARS else "")


def reference(document, collection, action):
    """Text for the day's list and for the searched hash."""
    now = datetime.now(timezone.utc).isoformat()
    line = json.dumps({"type": "notebook_ref", "action": action, "notebook_id": document["_id"],
                       "title": document["title"], "summary": document["summary"][:SUMMARY_CHARS],
                       "collection": collection, "timestamp": now, "agent": "agent:bench"})
    fields = {"content": f"[{action}] {document['title']}: {document['summary'][:SUMMARY_CHARS]}",
              "source": "notebook", "tags": collection, "score": "0.8", "timestamp": now}
    return line, fields


def new_document(item):
    now = datetime.now(timezone.utc).isoformat()
    return {"_id": str(uuid.uuid4())[:12], "title": item.title, "content": item.content,
            "summary": item.summary or short(item.content),
            "metadata": {"created_by": "agent:bench", "created_at": now, "updated_at": now, "version": 1,
                         "tags": item.tags, "word_count": len(item.content.split()), "status": "draft"},
            "history": [{"version": 1, "timestamp": now, "summary": "Created", "changed_by": "agent:bench"}]}


def changed(item):
    """Members that an update sets, and what the history says of it."""
    fields, said = {}, []
    if item.content is not None:
        fields |= {"content": item.content, "metadata.word_count": len(item.content.split())}
        said.append("content updated")
    if item.title is not None:
        fields["title"] = item.title
        said.append("title changed")
    if item.tags is not None:
        fields["metadata.tags"] = item.tags
        said.append("tags updated")
    if item.status is not None:
        fields["metadata.status"] = item.status
        said.append("status changed")
    return fields, "; ".join(said) or "updated"


class MongoNotebook:
    """Documents in MongoDB, references in Redis."""

    def __init__(self, mongo_uri, redis_uri, database):
        self.uris, self.database = (mongo_uri, redis_uri), database

    async def open(self):
        from pymongo import AsyncMongoClient
        from redis import asyncio as redis
        self.client = AsyncMongoClient(self.uris[0])
        self.db = self.client[self.database]
        self.redis = redis.from_url(self.uris[1])
        await self.db.pages.create_index([("metadata.updated_at", -1)])

    async def close(self):
        await self.client.close()
        await self.redis.aclose()

    async def refer(self, document, collection, action):
        line, fields = reference(document, collection, action)
        await self.redis.rpush(f"{DAYS_KEPT_BY}:{date.today().isoformat()}", line)
        await self.redis.hset(f"bench:ref:{document['_id']}", mapping=fields)

    async def create(self, item):
        document = new_document(item)
        await self.db[item.collection].insert_one(document)
        await self.refer(document, item.collection, "created")
        return document["_id"]

    async def read(self, item):
        document = await self.db[item.collection].find_one({"_id": item.notebook_id})
        if document:
            await self.refer(document, item.collection, "opened")
        return document

    async def update(self, item):
        from pymongo import ReturnDocument
        now = datetime.now(timezone.utc).isoformat()
        fields, said = changed(item)
        document = await self.db[item.collection].find_one_and_update(
            {"_id": item.notebook_id},
            {"$set": fields | {"metadata.updated_at": now}, "$inc": {"metadata.version": 1},
             "$push": {"history": {"timestamp": now, "summary": said, "changed_by": "agent:bench"}}},
            return_document=ReturnDocument.AFTER)
        if document:
            await self.refer(document, item.collection, "updated")
        return document

    async def search(self, item):
        words = {"$regex": item.query, "$options": "i"}
        cursor = self.db[item.collection or "pages"].find(
            {"$or": [{"title": words}, {"content": words}]}, {"title": 1, "summary": 1, "metadata": 1})
        return [document async for document in cursor.sort("metadata.updated_at", -1).limit(item.limit)]


class SqliteNotebook:
    """The same in one sqlite file; a commit is on disk before the answer."""

    def __init__(self, path):
        self.path = path

    async def open(self):
        import aiosqlite
        self.db = await aiosqlite.connect(self.path)
        await self.db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE notebook(collection TEXT, id TEXT, title TEXT, content TEXT, summary TEXT, metadata TEXT,"
            " history TEXT, PRIMARY KEY(collection, id)) WITHOUT ROWID;"
            "CREATE TABLE daily(day TEXT, line TEXT);"
            "CREATE TABLE refs(id TEXT PRIMARY KEY, fields TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5(id UNINDEXED, title, content);")

    async def close(self):
        await self.db.close()

    async def refer(self, document, collection, action):
        line, fields = reference(document, collection, action)
        await self.db.execute("INSERT INTO daily VALUES(?, ?)", (date.today().isoformat(), line))
        await self.db.execute("INSERT OR REPLACE INTO refs VALUES(?, ?)", (document["_id"], json.dumps(fields)))

    async def create(self, item):
        document = new_document(item)
        await self.db.execute("INSERT INTO notebook VALUES(?, ?, ?, ?, ?, ?, ?)", (
            item.collection, document["_id"], document["title"], document["content"], document["summary"],
            json.dumps(document["metadata"]), json.dumps(document["history"])))
        await self.db.execute("INSERT INTO words VALUES(?, ?, ?)",
                              (document["_id"], document["title"], document["content"]))
        await self.refer(document, item.collection, "created")
        await self.db.commit()
        return document["_id"]

    async def get(self, item):
        async with self.db.execute(
                "SELECT id, title, content, summary, metadata, history FROM notebook WHERE collection=? AND id=?",
                (item.collection, item.notebook_id)) as rows:
            row = await rows.fetchone()
        return row and {"_id": row[0], "title": row[1], "content": row[2], "summary": row[3],
                        "metadata": json.loads(row[4]), "history": json.loads(row[5])}

    async def read(self, item):
        document = await self.get(item)
        if document:
            await self.refer(document, item.collection, "opened")
            await self.db.commit()
        return document

    async def update(self, item):
        document = await self.get(item)
        if not document:
            return None
        now = datetime.now(timezone.utc).isoformat()
        fields, said = changed(item)
        for name, value in fields.items():
            inner = name.removeprefix("metadata.")
            (document["metadata"] if inner != name else document)[inner] = value
        document["metadata"]["version"] += 1
        document["metadata"]["updated_at"] = now
        document["history"].append({"version": document["metadata"]["version"], "timestamp": now, "summary": said,
                                    "changed_by": "agent:bench"})
        await self.db.execute(
            "UPDATE notebook SET title=?, content=?, metadata=?, history=? WHERE collection=? AND id=?",
            (document["title"], document["content"], json.dumps(document["metadata"]),
             json.dumps(document["history"][-100:]), item.collection, item.notebook_id))
        await self.refer(document, item.collection, "updated")
        await self.db.commit()
        return document

    async def search(self, item):
        async with self.db.execute(
                "SELECT n.id, n.title, n.summary, n.metadata FROM words w JOIN notebook n ON n.collection=? AND n.id=w.id"
                " WHERE words MATCH ? ORDER BY rank LIMIT ?",
                (item.collection or "pages", item.query, item.limit)) as rows:
            return [{"_id": row[0], "title": row[1], "summary": row[2], "metadata": json.loads(row[3])}
                    async for row in rows]


def application(notebook):
    app = FastAPI(on_startup=[notebook.open], on_shutdown=[notebook.close])

    def found(document):
        if not document:
            raise HTTPException(404, "not_found")
        return document

    @app.post("/notebook_create")
    async def create(item: Create):
        name = await notebook.create(item)
        return {"notebook_id": name, "title": item.title, "collection": item.collection, "status": "created"}

    @app.post("/notebook_read")
    async def read(item: Entry):
        return found(await notebook.read(item))

    @app.post("/notebook_update")
    async def update(item: Update):
        document = found(await notebook.update(item))
        return {"notebook_id": item.notebook_id, "status": "updated", "version": document["metadata"]["version"]}

    @app.post("/notebook_search")
    async def search(item: Search):
        return await notebook.search(item)

    return app


def main():
    port, kind, *where = sys.argv[1:]
    notebook = SqliteNotebook(*where) if kind == "sqlite" else MongoNotebook(*where)
    uvicorn.run(application(notebook), host="127.0.0.1", port=int(port), log_level="error", access_log=False)


if __name__ == "__main__":
    main()
