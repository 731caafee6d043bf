/** The store of uploaded files of tasks, and the removal of what no open task needs. */
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Views } from '../../controller/query/views.ts'
import { BlobStore, type NeededFolder } from '../files/blob-store.ts'
import { createFolderFiles, FILES_FOLDER } from '../files/folder-files.ts'
import type { Settings } from '../settings/settings.ts'
import type { DurableStore } from './open-store.ts'

const COLLECT_INTERVAL_MS = 60_000

/**
 * In the data folder, or in the database that several controllers share. Closes the store when the folder
 * cannot be used.
 */
export async function openBlobs({ dataDir, files }: Settings, store: DurableStore): Promise<BlobStore> {
  const { maxWorkdirBytes, ...limits } = files
  const shared = store.files?.() ?? null
  const kept = shared ?? createFolderFiles(join(dataDir, FILES_FOLDER))
  const blobs = new BlobStore({ files: kept, limits, maxWorkdirBytes, now: Date.now })
  const loaded = blobs.loaded()
  try {
    // A takeover does not wait for the list: requests that need it do, and try again after a fault.
    if (shared === null) await loaded
    else loaded.catch(() => undefined)
    return blobs
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
