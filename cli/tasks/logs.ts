/**
 * `headroom task logs`: the output of a task, each stream to the stream of the same name. Unchanged in a file
 * or a pipe; control characters are made visible on a terminal.
 */
import type { HeadroomClient } from '../../clients/typescript/client.ts'
import { drained } from '../output/drained.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { visible, visibleLines } from '../output/terminal-text.ts'
import { untilInterrupted } from '../command/interrupts.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'

export interface LogsOptions extends ServerOption {
  /** Absent: both. */
  readonly stream?: Stream
  readonly follow?: boolean
  /** Bytes from the start of the latest attempt, in the requested stream. */
  readonly offset?: number
}

type Stream = 'stdout' | 'stderr'

/** Maximum bytes of one request. */
const PIECE_BYTES = 131_072

export async function taskLogs(
  text: string,
  { stream, follow, offset, ...server }: LogsOptions,
): Promise<number> {
  if (offset !== undefined && stream === undefined)
    throw new UsageError('--offset counts the bytes of one stream: add --stream stdout or --stream stderr')
  const client = openClient(server)
  const id = await taskNamed(client, text)
  const copies = copiesOf(stream, offset ?? 0)
  if (follow === true) {
    await untilInterrupted(async (signal) => {
      await Promise.all(
        copies.map((copy) =>
          printFollowed(client, id, { stream: copy.stream, offset: copy.offset, signal }, copy.write),
        ),
      )
    })
  } else for (const copy of copies) await printKept(client, id, copy.stream, copy.offset, copy.write)
  return EXIT_OK
}

interface Copy {
  readonly stream: Stream
  readonly offset: number
  readonly write: Write
}

/** A requested stream goes to stdout, so that it can be redirected. */
function copiesOf(stream: Stream | undefined, offset: number): readonly Copy[] {
  if (stream !== undefined) return [{ stream, offset, write: writerOf(process.stdout) }]
  return [
    { stream: 'stdout', offset: 0, write: writerOf(process.stdout) },
    { stream: 'stderr', offset: 0, write: writerOf(process.stderr) },
  ]
}

/** Prints all existing output. */
async function printKept(
  client: HeadroomClient,
  id: string,
  stream: Stream,
  from: number,
  write: Write,
): Promise<void> {
  for (let offset = from; ;) {
    const piece = await client.tasks.readLog(id, { stream, offset, max_bytes: PIECE_BYTES })
    if (piece.next_offset <= offset) return
    reportGap(stream, piece.offset - offset)
    await write(Buffer.from(piece.data, 'base64'))
    offset = piece.next_offset
  }
}

type FollowOptions = NonNullable<Parameters<HeadroomClient['tasks']['followLog']>[1]>

async function printFollowed(
  client: HeadroomClient,
  id: string,
  options: FollowOptions,
  write: Write,
): Promise<void> {
  const onInterrupted = (error: Error): void =>
    void process.stderr.write(`headroom: ${visible(error.message)}; retrying\n`)
  const pieces = client.tasks.followLog(id, { ...options, onInterrupted })
  let reached = options.offset ?? 0
  for (let next = await pieces.next(); ; next = await pieces.next()) {
    if (next.done !== true) {
      reportGap(options.stream ?? 'stdout', next.value.offset - reached)
      reached = next.value.offset + next.value.bytes.length
      await write(next.value.bytes)
    } else if (next.value.why === 'superseded')
      return printFollowed(client, id, { ...options, offset: 0 }, write)
    else return
  }
}

/** The oldest output is dropped when a task writes more than its server keeps. */
function reportGap(stream: Stream, missingBytes: number): void {
  if (missingBytes > 0)
    process.stderr.write(`headroom: ${missingBytes} bytes of ${stream} are no longer available\n`)
}

/** Resolves when the reader has room for more: only this command waits, never the task. */
type Write = (bytes: Uint8Array) => Promise<void>

function writerOf(stream: NodeJS.WriteStream): Write {
  const decoder = new TextDecoder()
  return async (bytes) => {
    const text = stream.isTTY ? visibleLines(decoder.decode(bytes, { stream: true })) : bytes
    if (!stream.write(text)) await drained(stream)
  }
}
