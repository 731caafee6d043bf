/** Traces that people have sent: streamed to disk within a limit, checked in a process of its own, kept beside what is known of them. */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { byCodeUnits } from '../../controller/domain/order.ts'
import type { Outcome, Simulation, TraceEntry, TraceUpload } from '../../controller/ports/simulation.ts'
import { JobProcess } from '../workers/job-process.ts'
import { WorkerFault } from '../workers/worker-process.ts'
import { workerUrl } from '../workers/worker-url.ts'
import { LIMITS } from './limits.ts'
import { refused } from './scenario-gate.ts'
import type { TraceAnswer, TraceJob } from './trace-job.ts'

const SUFFIX = '.trace.jsonl'
const FACTS = '.facts.json'

/** What of the port is about traces. @param shippedFolder their names are taken */
export function tracesPort(
  folder: string,
  shippedFolder: string,
  now: () => number,
): Pick<Simulation, 'storeTrace' | 'traces' | 'removeTrace'> {
  let isBusy = false
  return {
    async storeTrace(upload) {
      if (isBusy) return refused({ code: 'too_many', detail: 'Another trace is being taken.', retryAfterSeconds: 5 })
      isBusy = true
      try {
        return await store(upload)
      } finally {
        isBusy = false
      }
    },
    traces: () => entries(folder),
    async removeTrace(name) {
      const isThere = (await entries(folder)).some((entry) => entry.name === name)
      if (isThere) await Promise.all([SUFFIX, FACTS].map((suffix) => rm(join(folder, name + suffix), { force: true })))
      return isThere
    },
  }

  async function store(upload: TraceUpload): Promise<Outcome<TraceEntry>> {
    const { name, body } = upload
    const taken = await stat(join(shippedFolder, name + SUFFIX)).catch(() => null)
    if (taken !== null) return refused({ code: 'conflict', detail: `A trace that comes with Headroom is called ${name}.` })
    const known = await entries(folder)
    if (known.length >= LIMITS.traces && !known.some((entry) => entry.name === name)) {
      return refused({ code: 'conflict', detail: `${LIMITS.traces} traces are kept already; delete one.` })
    }
    await mkdir(folder, { recursive: true })
    const work = join(folder, `.upload-${randomUUID()}`)
    await mkdir(work)
    try {
      const source = join(work, 'sent')
      const bytes = await receive(source, body)
      if (bytes === null) return refused({ code: 'body_too_large', limitBytes: LIMITS.traceBytes })
      const target = join(work, name + SUFFIX)
      const answer = await check({ source, target, name, format: upload.format, activityModel: upload.activityModel })
      if ('problem' in answer) return refused({ code: 'invalid', field: 'body', detail: answer.problem })
      const { isWritten, ...facts } = answer
      const entry: TraceEntry = { name, ...facts, createdAt: now(), createdBy: upload.by }
      await rename(isWritten ? target : source, join(folder, name + SUFFIX))
      await writeFile(join(folder, name + FACTS), JSON.stringify(entry))
      return { ok: true, value: entry }
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  }
}

/** @returns how much it was; null: more than is taken */
async function receive(file: string, body: AsyncIterable<Uint8Array>): Promise<number | null> {
  let bytes = 0
  async function* limited(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      bytes += piece.length
      if (bytes > LIMITS.traceBytes) return
      yield piece
    }
  }
  await pipeline(limited(), createWriteStream(file))
  return bytes > LIMITS.traceBytes ? null : bytes
}

async function check(job: TraceJob): Promise<TraceAnswer> {
  const process = new JobProcess<TraceJob, TraceAnswer>(workerUrl('simulations/trace-worker'), { heapMib: LIMITS.heapMib })
  const timer = setTimeout(() => void process.end(), LIMITS.traceWithinMs)
  try {
    return await process.ask(job)
  } catch (error) {
    if (error instanceof WorkerFault) return { problem: `The trace was not read: ${error.message}.` }
    throw error
  } finally {
    clearTimeout(timer)
    await process.end()
  }
}

/** In order of their names. */
async function entries(folder: string): Promise<readonly TraceEntry[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const facts = names.filter((name) => name.endsWith(FACTS)).sort(byCodeUnits)
  return Promise.all(facts.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as TraceEntry))
}
