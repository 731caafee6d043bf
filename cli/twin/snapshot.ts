/** `headroom snapshot`: streams the live state as a scenario file. */
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { pipeline } from 'node:stream/promises'
import { CommandFailure, EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { cannotBeWritten, checkPlace, placeOf } from '../../services/output-file.ts'
import { openClient, type ServerOption } from '../command/session.ts'

export interface SnapshotOptions extends ServerOption {
  readonly out?: string
}

export async function snapshot({ out, ...server }: SnapshotOptions): Promise<number> {
  const option = `--out ${out ?? ''}`
  if (out !== undefined) checkPlace(option, out)
  const answer = await openClient(server).snapshot()
  const body = Readable.fromWeb(answer.body as ReadableStream)
  if (out === undefined) {
    await pipeline(body, process.stdout, { end: false })
    return EXIT_OK
  }
  const { path, draft } = placeOf(out)
  try {
    await pipeline(body, createWriteStream(draft))
    if (draft !== path) await rename(draft, path)
  } catch (error) {
    if (draft !== path) await rm(draft, { force: true })
    if ('syscall' in (error as Error)) cannotBeWritten(option, error)
    throw new CommandFailure(
      `${out} was not written: the answer was cut off: ${(error as Error).message}`,
      EXIT_FAILED,
    )
  }
  process.stderr.write(`${out}: run it with headroom sim run ${out}\n`)
  return EXIT_OK
}
