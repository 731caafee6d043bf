/** Reads answers of the API server within a limit. */
import type { Readable } from 'node:stream'

export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

export async function textOf(answer: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Lines without their end; the limit is that of one line. */
export async function* linesOf(answer: Readable, maxBytes: number): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer) {
    let rest = chunk as Buffer
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      yield Buffer.concat([...parts, rest.subarray(0, end)]).toString('utf8')
      parts = []
      bytes = 0
      rest = rest.subarray(end + 1)
    }
    bytes += rest.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    if (rest.length > 0) parts.push(rest)
  }
}

function tooLarge(maxBytes: number): AnswerTooLarge {
  return new AnswerTooLarge(`the API server sent more than ${maxBytes} bytes in one answer`)
}
