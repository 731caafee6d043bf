/** Reads one line without showing it: from a terminal after a prompt, otherwise from stdin. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** Resolves with an empty text at the end of the input. */
export async function readSecret(prompt: string): Promise<string> {
  const isTerminal = process.stdin.isTTY
  if (isTerminal) process.stderr.write(prompt)
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: unseen, terminal: isTerminal })
  try {
    // Ctrl-C in raw mode is not a signal.
    lines.once('SIGINT', () => process.exit(130))
    for await (const line of lines) return line
    return ''
  } finally {
    lines.close()
    if (isTerminal) process.stderr.write('\n')
  }
}
