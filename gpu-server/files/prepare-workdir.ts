/**
 * Fills the work folder of an attempt with the uploaded folder of its task, before its process starts. Chunks
 * come from the controller and are checked against their hashes; everything is written as the task's user.
 */
import { createHash } from 'node:crypto'
import { CHUNK_BYTES, MAX_FILE_BYTES } from '../../protocol/limits.ts'
import { chunkBytes, readManifest, type Manifest, type ManifestEntry } from '../../protocol/manifest.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { ReadBlobPart } from '../core/device.ts'
import { refusalOfFault } from '../guard/launch-refusal.ts'
import { WRITE_EXECUTABLE, WRITE_NEW, type HelperRequest, type WorkHelper } from './work-helper.ts'

export interface Preparation {
  readonly helper: WorkHelper
  /** SHA-256 of the manifest. */
  readonly sha256: string
  readonly read: ReadBlobPart
  /** Bytes that the disk can take. */
  readonly freeBytes: number
  /** Ends it: the attempt was stopped. */
  readonly signal: AbortSignal
  readonly onProgress?: ((bytesDone: number, bytesTotal: number) => void) | undefined
}

export interface NotPrepared {
  readonly error: string
  readonly refused: StartRefused
}

/** Chunks that are fetched at the same time. */
const CHUNKS_AT_ONCE = 4
/** Requests that are under way for one chunk. */
const PARTS_AT_ONCE = 2
/** Without any answer for this long, the preparation is given up. */
const PATIENCE_MS = 60_000
const RETRY_MS = 250
const WRITE_BYTES = 256 * 1024

/** Returns null once everything is there; never rejects except for a fault of the helper. */
export async function prepareWorkdir(preparation: Preparation): Promise<NotPrepared | null> {
  try {
    const text = await fetched(preparation, preparation.sha256, null)
    const read = readManifest(new TextDecoder().decode(text))
    if (!read.ok) throw new Refusal(`the manifest is refused: ${read.why}`, FILES_REFUSED)
    if (read.bytes > preparation.freeBytes)
      throw new Refusal('the disk has too little space for the uploaded folder', DISK_FULL)
    await makeFiles(preparation, read.manifest, read.bytes)
    return null
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { error: `files: ${error.message}`, refused: error.refused }
  }
}

class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly refused: StartRefused
  constructor(message: string, refused: StartRefused) {
    super(message)
    this.refused = refused
  }
}

const DISK_FULL: StartRefused = { cause: 'host', code: 'disk_full' }
const FILES_REFUSED: StartRefused = { cause: 'task', code: 'files_refused' }
/** The controller has not all of its files, for example after a restore. */
const FILES_MISSING: StartRefused = { cause: 'task', code: 'files_missing' }
/** Neither the host nor the task is the cause: the controller or the broker was away. */
const FILES_UNAVAILABLE: StartRefused = { cause: 'passing', code: 'files_unavailable' }
const STOPPED: StartRefused = { cause: 'passing', code: 'stopped' }

interface ChunkJob {
  readonly path: string
  readonly place: number
  readonly sha256: string
  readonly bytes: number
}

async function makeFiles(preparation: Preparation, { entries }: Manifest, bytesTotal: number): Promise<void> {
  const jobs: ChunkJob[] = []
  for (const entry of entries) {
    if (entry.kind === 'link') continue
    stopIfAborted(preparation.signal)
    await write(preparation, requestFor(entry))
    if (entry.kind !== 'file') continue
    for (const [place, sha256] of entry.chunks.entries())
      jobs.push({ path: entry.path, place, sha256, bytes: chunkBytes(entry.bytes, place) })
  }
  let next = 0
  let bytesDone = 0
  const work = async (): Promise<void> => {
    for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) {
      await fill(preparation, job)
      bytesDone += job.bytes
      preparation.onProgress?.(bytesDone, bytesTotal)
    }
  }
  const failed = (await Promise.allSettled(Array.from({ length: CHUNKS_AT_ONCE }, work))).find(
    (one) => one.status === 'rejected',
  )
  if (failed !== undefined) throw failed.reason
  // Last, so that nothing is written while there are links.
  for (const entry of entries) if (entry.kind === 'link') await write(preparation, requestFor(entry))
}

function requestFor(entry: ManifestEntry): HelperRequest {
  switch (entry.kind) {
    case 'folder':
      return { op: 'folder', payload: Buffer.from(entry.path) }
    case 'link':
      return { op: 'link', payload: Buffer.from(`${entry.path}\0${entry.target}`) }
    case 'file':
      return {
        op: 'write',
        b: WRITE_NEW | (entry.executable ? WRITE_EXECUTABLE : 0),
        payload: Buffer.from(`${entry.path}\0`),
      }
  }
}

async function fill(preparation: Preparation, { path, place, sha256, bytes }: ChunkJob): Promise<void> {
  const chunk = await fetched(preparation, sha256, bytes)
  for (let at = 0; at < chunk.byteLength; at += WRITE_BYTES) {
    const payload = Buffer.concat([Buffer.from(`${path}\0`), chunk.subarray(at, at + WRITE_BYTES)])
    await write(preparation, { op: 'write', a: place * CHUNK_BYTES + at, payload })
  }
}

async function write({ helper }: Preparation, request: HelperRequest): Promise<void> {
  const { error } = await helper.request(request)
  if (error === null) return
  const refused = OF_THE_NAMES.has(error)
    ? FILES_REFUSED
    : refusalOfFault(Object.assign(new Error(error), { code: error }), 'work_folder')
  throw new Refusal(`the work folder: ${error}`, refused)
}

/** Errors that the names in the manifest cause. */
const OF_THE_NAMES: ReadonlySet<string> = new Set([
  'ENAMETOOLONG',
  'EEXIST',
  'ELOOP',
  'EXDEV',
  'EINVAL',
  'EILSEQ',
])

/** @param bytes null: not known yet, at most CHUNK_BYTES */
async function fetched(preparation: Preparation, sha256: string, bytes: number | null): Promise<Buffer> {
  const first = await part(preparation, sha256, 0)
  const size = first.bytes
  if (size > CHUNK_BYTES || (bytes !== null && size !== bytes))
    throw new Refusal(`${sha256} has ${size} bytes, which differs from the manifest`, FILES_REFUSED)
  const parts: Buffer[] = [first.data]
  const offsets: number[] = []
  for (let at = first.data.byteLength; at < size && first.data.byteLength > 0; at += MAX_FILE_BYTES)
    offsets.push(at)
  for (let at = 0; at < offsets.length; at += PARTS_AT_ONCE) {
    const some = offsets.slice(at, at + PARTS_AT_ONCE)
    parts.push(
      ...(await Promise.all(some.map(async (offset) => (await part(preparation, sha256, offset)).data))),
    )
  }
  const whole = Buffer.concat(parts)
  if (createHash('sha256').update(whole).digest('hex') !== sha256)
    throw new Refusal(`${sha256} was damaged in transit`, FILES_UNAVAILABLE)
  return whole
}

interface Part {
  readonly data: Buffer
  readonly bytes: number
}

/** Repeats until there is an answer, or the time is over. */
async function part({ read, signal }: Preparation, sha256: string, offset: number): Promise<Part> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    stopIfAborted(signal)
    const answer = await new Promise<Parameters<Parameters<ReadBlobPart>[2]>[0]>((done) =>
      read(sha256, offset, done),
    )
    if (answer !== null && !('refused' in answer))
      return { data: Buffer.from(answer.data, 'base64'), bytes: answer.bytes }
    if (answer !== null && answer.refused !== BUSY) {
      const isMissing = answer.refused === 'files_missing'
      throw new Refusal(
        `the controller refuses ${sha256} (${answer.refused})`,
        isMissing ? FILES_MISSING : FILES_UNAVAILABLE,
      )
    }
    if (performance.now() >= until) throw new Refusal('the controller does not answer', FILES_UNAVAILABLE)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** The refusal that passes. */
const BUSY = 'too_many_reads'

function stopIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new Refusal('it was stopped first', STOPPED)
}
