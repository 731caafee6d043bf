/**
 * Uploaded traces: streamed to disk within a limit, checked in their own process, stored with their facts.
 */
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { byCodeUnits } from '../../../controller/structures/order.ts'
import type { Outcome, Simulation, TraceEntry, TraceUpload } from '../../../controller/ports/simulation.ts'
import { JobProcess } from '../../workers/job-process.ts'
import { WorkerFault } from '../../workers/worker-process.ts'
import { workerUrl } from '../../workers/worker-url.ts'
import { LIMITS, whyNotTheirs, refused } from './limits.ts'
import { newPartialName } from './partial-uploads.ts'
import type { TraceAnswer, TraceJob } from './trace-job.ts'
import { bytesBelow, type UploadQuota } from './upload-quota.ts'

const SUFFIX = '.trace.jsonl'
const FACTS = '.facts.json'
/** Quota check interval while a file is received. */
const CHECK_INTERVAL_BYTES = 16 * 1024 * 1024
/** Quota check interval while a file is read. */
const CHECK_INTERVAL_MS = 500

export interface TracesOptions {
  readonly folder: string
  /** Names of traces there are reserved. */
  readonly shippedFolder: string
  readonly quota: UploadQuota
  readonly now: () => number
}

type TracesPort = Pick<Simulation, 'storeTrace' | 'traces' | 'removeTrace'>

/** The part of the port for traces. */
export function tracesPort(options: TracesOptions): TracesPort {
  const { folder } = options
  let isBusy = false
  return {
    async storeTrace(upload) {
      if (isBusy)
        return refused({
          code: 'too_many',
          detail: 'Another trace is being uploaded. Try again later.',
          retryAfterSeconds: 5,
        })
      isBusy = true
      try {
        return await store(options, upload)
      } finally {
        isBusy = false
      }
    },
    traces: () => traceEntries(folder),
    async removeTrace(name, by) {
      const entry = (await traceEntries(folder)).find((each) => each.name === name)
      if (entry === undefined) return { ok: true, value: false }
      const notTheirs = whyNotTheirs(`The trace ${name}`, entry.createdBy, by)
      if (notTheirs !== null) return refused({ code: 'forbidden', detail: notTheirs })
      await Promise.all([SUFFIX, FACTS].map((suffix) => rm(join(folder, name + suffix), { force: true })))
      return { ok: true, value: true }
    },
  }
}

async function store(options: TracesOptions, upload: TraceUpload): Promise<Outcome<TraceEntry>> {
  const { folder, shippedFolder, quota, now } = options
  const { name, by } = upload
  const taken = await stat(join(shippedFolder, name + SUFFIX)).catch(() => null)
  if (taken !== null)
    return refused({
      code: 'conflict',
      detail: `The name ${name} is used by a trace that is part of Headroom. Choose another name.`,
    })
  const known = await traceEntries(folder)
  const before = known.find((entry) => entry.name === name)
  if (known.length >= LIMITS.traces && before === undefined) {
    return refused({
      code: 'conflict',
      detail: `The limit of ${LIMITS.traces} traces is reached. Delete one first.`,
    })
  }
  const notTheirs = before === undefined ? null : whyNotTheirs(`The trace ${name}`, before.createdBy, by)
  if (notTheirs !== null) return refused({ code: 'forbidden', detail: notTheirs })
  await mkdir(folder, { recursive: true })
  const work = join(folder, newPartialName())
  await mkdir(work)
  try {
    const quotaCheck = await quotaCheckFor(quota, work, by.name)
    const source = join(work, 'sent')
    const received = await receive(source, upload.body, quotaCheck)
    if (received !== null) return received
    const target = join(work, name + SUFFIX)
    const answer = await check(
      { source, target, name, format: upload.format, activityModel: upload.activityModel },
      quotaCheck,
    )
    if ('full' in answer) return refused({ code: 'uploads_full', detail: answer.full })
    if ('problem' in answer) return refused({ code: 'invalid', field: 'body', detail: answer.problem })
    const { isWritten, ...facts } = answer
    const written = isWritten ? target : source
    const { size: bytes } = await stat(written)
    // Replacing a trace as an operator keeps its owner.
    const createdBy = before === undefined ? by.name : before.createdBy
    const entry: TraceEntry = { name, ...facts, createdAt: now(), createdBy, bytes }
    await rename(written, join(folder, name + SUFFIX))
    await writeFile(join(folder, name + FACTS), JSON.stringify(entry))
    return { ok: true, value: entry }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Returns why the files of one upload exceed the quota; null: they do not. */
type QuotaCheck = () => Promise<string | null>

async function quotaCheckFor(quota: UploadQuota, work: string, owner: string | null): Promise<QuotaCheck> {
  const usage = await quota.usageOf(owner)
  return async () => quota.whyNot(usage, await bytesBelow(work)) ?? (await quota.whyDiskIsShort())
}

/** @returns why the file was refused; null: it was stored */
async function receive(
  file: string,
  body: AsyncIterable<Uint8Array>,
  quotaCheck: QuotaCheck,
): Promise<Outcome<never> | null> {
  let bytes = 0
  let lookAt = 0
  let refusal: Outcome<never> | null = null
  async function* limited(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      bytes += piece.length
      if (bytes > LIMITS.traceBytes) {
        refusal = refused({ code: 'body_too_large', limitBytes: LIMITS.traceBytes })
        return
      }
      if (bytes >= lookAt) {
        lookAt = bytes + CHECK_INTERVAL_BYTES
        const full = await quotaCheck()
        if (full !== null) {
          refusal = refused({ code: 'uploads_full', detail: full })
          return
        }
      }
      yield piece
    }
  }
  await pipeline(limited(), createWriteStream(file))
  const full = refusal === null ? await quotaCheck() : null
  return full === null ? refusal : refused({ code: 'uploads_full', detail: full })
}

/** A converted trace grows next to the uploaded file, and so do temporary files of the sort. */
async function check(
  job: TraceJob,
  quotaCheck: QuotaCheck,
): Promise<TraceAnswer | { readonly full: string }> {
  const process = new JobProcess<TraceJob, TraceAnswer>(workerUrl('simulations/library/trace-worker'), {
    heapMib: LIMITS.heapMib,
  })
  let full: string | null = null
  const timer = setTimeout(() => void process.end(), LIMITS.traceWithinMs)
  const watch = setInterval(() => {
    void quotaCheck().then((why) => {
      if (why === null || full !== null) return
      full = why
      void process.end()
    })
  }, CHECK_INTERVAL_MS)
  try {
    return await process.ask(job)
  } catch (error) {
    if (full !== null) return { full }
    if (error instanceof WorkerFault) return { problem: `The trace could not be read: ${error.message}.` }
    throw error
  } finally {
    clearTimeout(timer)
    clearInterval(watch)
    await process.end()
  }
}

/** Sorted by name. */
export async function traceEntries(folder: string): Promise<readonly TraceEntry[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const facts = names.filter((name) => name.endsWith(FACTS)).sort(byCodeUnits)
  return Promise.all(facts.map((name) => entryIn(folder, name)))
}

/** The size is read from the file: earlier versions did not store it. */
async function entryIn(folder: string, name: string): Promise<TraceEntry> {
  const entry = JSON.parse(await readFile(join(folder, name), 'utf8')) as TraceEntry
  const bytes = await stat(join(folder, entry.name + SUFFIX)).then(
    ({ size }) => size,
    () => 0,
  )
  return { ...entry, bytes }
}
