/** `headroom snapshot`: the live state as a scenario file, as it comes. */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { pipeline } from 'node:stream/promises'
import { CommandFailure, EXIT_FAILED, EXIT_OK } from '../exit-codes.ts'
import { openClient, type ServerOption } from './session.ts'

export interface SnapshotOptions extends ServerOption {
  readonly out?: string
}

export async function snapshot({ out, ...server }: SnapshotOptions): Promise<number> {
  const answer = await openClient(server).snapshot()
  const body = Readable.fromWeb(answer.body as ReadableStream)
  if (out === undefined) {
    await pipeline(body, process.stdout, { end: false })
    return EXIT_OK
  }
  try {
    await pipeline(body, createWriteStream(out))
  } catch (error) {
    throw new CommandFailure(`cannot write ${out}: ${(error as Error).message}`, EXIT_FAILED)
  }
  process.stderr.write(`${out}: run it with headroom sim run ${out}\n`)
  return EXIT_OK
}
