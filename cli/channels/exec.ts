/** `headroom exec`: a command in a running task, with its streams and exit code here. */
import type { TaskChannel } from '../../clients/typescript/channels.ts'
import { CommandFailure, UsageError } from '../../services/exit-codes.ts'
import { onInterrupt } from '../command/interrupts.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'
import { drained } from '../output/drained.ts'

export interface ExecOptions extends ServerOption {
  readonly stdin?: boolean
  readonly tty?: boolean
}

const SIGNAL_EXIT = 128
const DEFAULT_TERM = 'dumb'

export async function exec(
  text: string,
  command: readonly string[],
  { stdin = false, tty = false, ...server }: ExecOptions,
): Promise<number> {
  if (command.length === 0)
    throw new UsageError(`a command is required: headroom exec ${text} -- COMMAND [ARGUMENT...]`)
  if (tty && !(process.stdin.isTTY && process.stdout.isTTY))
    throw new UsageError('-t requires a terminal for standard input and output. Use -i for a pipe')
  const client = openClient(server)
  const id = await taskNamed(client, text)
  const terminal = tty ? terminalHere() : null
  const channel = await client.tasks.openChannel(id, { command, terminal })
  const interrupts = onInterrupt(() => channel.close())
  const restore = tty ? takeTerminal(channel) : () => {}
  passInput(channel, stdin || tty)
  try {
    return await exitCodeOf(channel)
  } catch (error) {
    if (interrupts.exitCode !== null) return interrupts.exitCode
    throw error
  } finally {
    restore()
    interrupts.end()
    process.stdin.destroy()
  }
}

async function exitCodeOf(channel: TaskChannel): Promise<number> {
  const end = await channel.receive({
    data: (bytes) => print(process.stdout, bytes),
    errors: (bytes) => print(process.stderr, bytes),
  })
  switch (end.kind) {
    case 'exit':
      return end.code
    case 'signal':
      return SIGNAL_EXIT + end.number
    case 'closed':
      return 0
    case 'cut':
      throw new CommandFailure(`the command was terminated: ${end.why}`)
  }
}

async function print(to: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> {
  if (!to.write(bytes)) await drained(to)
}

function passInput(channel: TaskChannel, isPassed: boolean): void {
  if (!isPassed) return void channel.sendEnd()
  const { stdin } = process
  stdin.on('data', (bytes: Buffer) => {
    stdin.pause()
    void channel.send(bytes).then(() => stdin.resume())
  })
  stdin.once('end', () => void channel.sendEnd())
  stdin.once('error', () => void channel.sendEnd())
}

function terminalHere(): { readonly rows: number; readonly columns: number; readonly kind: string } {
  const kind = process.env['TERM'] ?? DEFAULT_TERM
  const { rows = 0, columns = 0 } = process.stdout
  return { rows, columns, kind: /^[\w.+-]{1,64}$/.test(kind) ? kind : DEFAULT_TERM }
}

/** Keys go to the task as they are, Ctrl-C too. Returns a function that gives the terminal back. */
function takeTerminal(channel: TaskChannel): () => void {
  const { stdin, stdout } = process
  const resize = (): void => channel.resize(stdout.rows, stdout.columns)
  stdin.setRawMode(true)
  stdout.on('resize', resize)
  return () => {
    stdout.off('resize', resize)
    stdin.setRawMode(false)
  }
}
