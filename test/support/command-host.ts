/**
 * Runs commands of `headroom` one after the other in this process, whose modules are loaded once. The parent
 * sends a request and gets what the command wrote and its exit code.
 */
import { programOf } from '../../cli/program.ts'
import { runCommandLine } from '../../cli/run-command-line.ts'

export interface CommandRequest {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

class Exited extends Error {}

const [node = '', ...ownArguments] = process.argv
const leave = process.exit.bind(process)
/** Commands count their time from the start of their process. */
const elapsed = performance.now.bind(performance)

process.on('disconnect', () => leave())
process.on('message', (request: CommandRequest) => void answer(request))

async function answer({ args, cwd, env }: CommandRequest): Promise<void> {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv = [node, ...ownArguments.slice(0, 1), ...args]
  const beginsAt = elapsed()
  performance.now = () => elapsed() - beginsAt
  const stdout = collect(process.stdout)
  const stderr = collect(process.stderr)
  const code = await untilItEnds(args)
  const result: CommandResult = { code, stdout: stdout(), stderr: stderr() }
  process.send?.(result)
}

function untilItEnds(args: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    process.exit = (code) => {
      resolve(Number(code ?? process.exitCode ?? 0))
      throw new Exited('the command has called process.exit')
    }
    void runCommandLine(args, programOf).then(resolve)
  })
}

/** @returns a function that ends the collection and gives the text */
function collect(stream: NodeJS.WriteStream): () => string {
  const parts: Buffer[] = []
  const write = stream.write
  stream.write = ((part: string | Uint8Array, ...rest: readonly unknown[]) => {
    const encoding = typeof rest[0] === 'string' ? (rest[0] as BufferEncoding) : 'utf8'
    parts.push(typeof part === 'string' ? Buffer.from(part, encoding) : Buffer.from(part))
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined
    if (done !== undefined) process.nextTick(done)
    return true
  }) as typeof stream.write
  return () => {
    stream.write = write
    // A command listens until its process ends, which here is not its own.
    stream.removeAllListeners('error')
    return Buffer.concat(parts).toString('utf8')
  }
}
