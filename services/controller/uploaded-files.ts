/** The store of uploaded files of tasks, and the removal of what no open task needs. */
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Store } from '../../controller/ports/store.ts'
import type { Views } from '../../controller/query/views.ts'
import { BlobStore, FILES_FOLDER, type NeededFolder } from '../files/blob-store.ts'
import type { Settings } from '../settings/settings.ts'

const COLLECT_INTERVAL_MS = 60_000

/** Closes the store when the folder cannot be used. */
export async function openBlobs({ dataDir, files }: Settings, store: Store): Promise<BlobStore> {
  const { maxWorkdirBytes, ...limits } = files
  try {
    return await BlobStore.open({
      folder: join(dataDir, FILES_FOLDER),
      limits,
      maxWorkdirBytes,
      now: Date.now,
    })
  } catch (error) {
    await store.close()
    throw error
  }
}

/** @returns a function that ends it */
export function collectBlobs(blobs: BlobStore, views: Views, log: Logger): () => void {
  blobs.keepFor(() => neededFolders(views))
  const timer = setInterval(() => {
    blobs.collect().catch((err: unknown) => log.warn({ err }, 'uploaded files cannot be removed'))
  }, COLLECT_INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function* neededFolders(views: Views): Generator<NeededFolder> {
  for (const { spec } of views.openTasks()) {
    const { owner, workdir: manifest = null } = spec
    if (manifest !== null) yield { owner, manifest }
  }
}
