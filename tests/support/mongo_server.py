# SPDX-License-Identifier: MIT
"""SecantusDB, which speaks MongoDB's protocol, as a program: it tells what its threads do on SIGUSR1, and one fault of its is mended."""

import faulthandler
import signal
import sys

from secantus import storage
from secantus.cli import main


def mend_create_collection():
    """createIndexes makes a collection outside any transaction, and holds the lock of the whole store meanwhile. Where an insert makes
    the same collection, WiredTiger repeats the write until the insert's transaction ends, and that one waits for the lock: for good.
    MongoDB waits for the insert. So does this: it tries the write in a transaction first, which does not repeat it, and lets go of the lock
    while it is refused."""
    make = storage.Storage.create_collection

    @storage._retry_write_conflicts
    def create_collection(self, db, coll, options=None):
        with self._lock:
            if getattr(self._tls, "user_txn", None) is None and self._coll_options(db, coll) is None:
                cursor = self._cursor(storage._COLL_TABLE)
                session = self._session()
                session.begin_transaction()
                try:
                    cursor[db, coll] = b""
                finally:
                    cursor.reset()
                    session.rollback_transaction()
            return make(self, db, coll, options)

    storage.Storage.create_collection = create_collection


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    mend_create_collection()
    sys.exit(main())
