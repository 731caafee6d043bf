/** An uploaded trace, checked and converted in its own process. */
import { readSync, openSync, closeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ActivityModelName } from '../../../simulator/trace/activity.ts'
import { importTrace } from '../../../simulator/trace/import/import-trace.ts'
import { IMPORTERS, importerOf } from '../../../simulator/trace/formats/importers.ts'
import { TraceError } from '../../../simulator/trace/trace-error.ts'
import { openTrace } from '../../../simulator/trace/trace-file-reader.ts'
import { inspectTrace } from '../../../simulator/trace/inspect.ts'
import { writeTrace } from '../../../simulator/trace/trace-file-writer.ts'

export interface TraceJob {
  /** The uploaded file. */
  readonly source: string
  /** Destination of the trace. */
  readonly target: string
  readonly name: string
  /** Null: a trace already, or the format is not known. */
  readonly format: string | null
  readonly activityModel: ActivityModelName | null
}

export type TraceAnswer =
  | {
      readonly format: string
      readonly tasks: number
      readonly rows: number
      readonly dropped: Readonly<Record<string, number>>
      readonly isWritten: boolean
    }
  /** The file cannot be used; message for users. */
  | { readonly problem: string }

export async function traceJob(job: TraceJob): Promise<TraceAnswer> {
  try {
    return isTrace(job.source) && (job.format === null || job.format === 'trace')
      ? await checked(job)
      : await imported(job)
  } catch (error) {
    if (error instanceof TraceError || error instanceof RangeError)
      return { problem: error.message.replaceAll(job.source, job.name) }
    throw error
  }
}

/** The file is a trace: every line is read once. */
async function checked({ source }: TraceJob): Promise<TraceAnswer> {
  const trace = await openTrace(source)
  const { header } = trace
  const { tasks } = await inspectTrace(trace)
  return { format: 'trace', tasks, rows: header.rows, dropped: header.dropped, isWritten: false }
}

async function imported({ source, target, name, format, activityModel }: TraceJob): Promise<TraceAnswer> {
  if (format === null) {
    const formats = IMPORTERS.map((importer) => importer.format).join(', ')
    throw new TraceError(
      { field: 'format' },
      `is required: the file is not a Headroom trace; use one of ${formats}`,
    )
  }
  const options = { name, spillFolder: dirname(target), ...(activityModel === null ? {} : { activityModel }) }
  const trace = await importTrace(importerOf(format), source, options)
  try {
    const { tasks } = await writeTrace(target, trace.header, trace.tasks)
    return { format, tasks, rows: trace.header.rows, dropped: trace.header.dropped, isWritten: true }
  } finally {
    await trace.close()
  }
}

const HEAD_BYTES = 16

/** Checks the first bytes. */
function isTrace(file: string): boolean {
  const head = Buffer.alloc(HEAD_BYTES)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, head, 0, HEAD_BYTES, 0)
  } finally {
    closeSync(handle)
  }
  return head.toString('latin1').startsWith('{"trace"')
}
