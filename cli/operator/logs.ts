/** `headroom task logs`: what a task wrote, as it is in a file or a pipe, with its control characters shown on a terminal. */
import type { HeadroomClient } from '../client/client.ts'
import { EXIT_OK } from '../exit-codes.ts'
import { visible, visibleLines } from '../terminal-text.ts'
import { untilInterrupted } from './interrupt.ts'
import { openClient, type ServerOption } from './session.ts'

export interface LogsOptions extends ServerOption {
  readonly stream: 'stdout' | 'stderr'
  readonly follow?: boolean
  /** Bytes from the start of the latest attempt. */
  readonly offset: number
}

/** What one request may hold. */
const PIECE_BYTES = 131_072

export async function taskLogs(id: string, { stream, follow, offset, ...server }: LogsOptions): Promise<number> {
  const client = openClient(server)
  const write = writerOf(process.stdout)
  if (follow === true) await untilInterrupted((signal) => followed(client, id, { stream, offset, signal }, write))
  else await written(client, id, stream, offset, write)
  return EXIT_OK
}

/** All that is there now. */
async function written(client: HeadroomClient, id: string, stream: 'stdout' | 'stderr', from: number, write: Write): Promise<void> {
  for (let offset = from; ;) {
    const piece = await client.tasks.readLog(id, { stream, offset, max_bytes: PIECE_BYTES })
    if (piece.next_offset <= offset) return
    write(Buffer.from(piece.data, 'base64'))
    offset = piece.next_offset
  }
}

type FollowOptions = NonNullable<Parameters<HeadroomClient['tasks']['followLog']>[1]>

async function followed(client: HeadroomClient, id: string, options: FollowOptions, write: Write): Promise<void> {
  const onInterrupted = (error: Error): void => void process.stderr.write(`headroom: ${visible(error.message)}; trying again\n`)
  const pieces = client.tasks.followLog(id, { ...options, onInterrupted })
  for (let next = await pieces.next(); ; next = await pieces.next()) {
    if (next.done !== true) write(next.value.bytes)
    else if (next.value.why === 'superseded') return followed(client, id, { ...options, offset: 0 }, write)
    else return
  }
}

type Write = (bytes: Uint8Array) => void

function writerOf(stream: NodeJS.WriteStream): Write {
  if (!stream.isTTY) return (bytes) => void stream.write(bytes)
  const decoder = new TextDecoder()
  return (bytes) => void stream.write(visibleLines(decoder.decode(bytes, { stream: true })))
}
