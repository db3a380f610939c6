# SPDX-License-Identifier: MIT
"""SecantusDB, which speaks MongoDB's protocol, as a program; one fault of its is mended."""

import sys

from secantus import storage
from secantus.cli import main


def mend_create_collection():
    """createIndexes writes the row of a new collection outside any transaction, with the lock of the whole store. If a transaction has
    written that row already, WiredTiger retries the write until that transaction ends, and that transaction waits for the lock: a deadlock.
    MongoDB waits for the transaction. So this writes it in a transaction of its own: a conflict is an error there, the lock is released, and
    _retry_write_conflicts calls again."""
    make = storage.Storage.create_collection

    @storage._retry_write_conflicts
    def create_collection(self, db, coll, options=None):
        with self._lock, self._batch_transaction():
            return make(self, db, coll, options)

    storage.Storage.create_collection = create_collection


if __name__ == "__main__":
    mend_create_collection()
    sys.exit(main())
