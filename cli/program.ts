/** All commands of `headroom`, in the order of its help. Their declarations are loaded when needed. */
import { Command } from 'commander'
import { packageVersion } from '../services/package-info.ts'
import type { SetExit } from './command/command-shape.ts'
import { onOneLine } from './command/one-line.ts'

/** Declares commands that need no others. */
interface Part {
  readonly names: readonly string[]
  readonly load: () => Promise<(program: Command, setExit: SetExit) => void>
}

const SECTIONS: Readonly<Record<string, readonly Part[]>> = {
  'Cluster:': [
    part(['serve'], async () => (await import('./controller/commands.ts')).addServe),
    part(['gpu-server'], async () => (await import('./gpu-server/commands.ts')).addGpuServer),
    part(['live'], async () => (await import('./controller/commands.ts')).addLive),
    part(['status'], async () => (await import('./status/commands.ts')).addStatus),
    part(['top'], async () => (await import('./status/commands.ts')).addTop),
    part(['node'], async () => (await import('./nodes/commands.ts')).addNode),
    part(['group'], async () => (await import('./groups/commands.ts')).addGroup),
    part(['config'], async () => (await import('./config/commands.ts')).addConfig),
    part(['events'], async () => (await import('./events/commands.ts')).addEvents),
    part(['decisions'], async () => (await import('./events/commands.ts')).addDecisions),
    part(['why-pending'], async () => (await import('./tasks/commands.ts')).addWhyPending),
  ],
  'Tasks:': [
    part(['run'], async () => (await import('./run/run.ts')).addRun),
    part(['submit'], async () => (await import('./run/run.ts')).addSubmit),
    part(['apply'], async () => (await import('./run/run.ts')).addApply),
    part(['lease'], async () => (await import('./run/run.ts')).addLease),
    part(
      ['ps', 'explain', 'logs', 'wait', 'cancel', 'stop', 'warm'],
      async () => (await import('./tasks/commands.ts')).addTaskShortcuts,
    ),
    part(['task'], async () => (await import('./tasks/commands.ts')).addTask),
    part(['artifacts', 'cp'], async () => (await import('./files/commands.ts')).addFileCommands),
    part(['exec', 'port-forward'], async () => (await import('./channels/commands.ts')).addChannelCommands),
  ],
  'Planning and simulation:': [
    part(['whatif'], async () => (await import('./kubernetes/commands.ts')).addWhatif),
    part(['snapshot', 'twin'], async () => (await import('./twin/twin-commands.ts')).addTwinCommands),
    part(['sim'], async () => (await import('./sim/sim.ts')).addSimCommands),
    part(['trace'], async () => (await import('./trace/trace.ts')).addTraceCommands),
  ],
  'Access:': [
    part(['login', 'context'], async () => (await import('./contexts/commands.ts')).addContextCommands),
    part(['token'], async () => (await import('./tokens/token.ts')).addTokenCommands),
    part(['secret'], async () => (await import('./tokens/secret.ts')).addSecretCommands),
    part(['audit'], async () => (await import('./tokens/token.ts')).addAudit),
  ],
  'Operations:': [
    part(
      ['backup', 'restore', 'verify', 'store'],
      async () => (await import('./store/store-commands.ts')).addStoreCommands,
    ),
    part(['leader'], async () => (await import('./leader/commands.ts')).addLeader),
    part(
      ['recovery', 'attempts'],
      async () => (await import('./tasks/recovery-commands.ts')).addRecoveryCommands,
    ),
    part(['nats'], async () => (await import('./nats/nats.ts')).addNatsCommands),
    part(['gateway'], async () => (await import('./gateway/commands.ts')).addGateway),
    part(['operator'], async () => (await import('./operator/commands.ts')).addOperatorCommands),
  ],
  'Development:': [
    part(['work'], async () => (await import('./gpu-server/commands.ts')).addWork),
    part(['conformance'], async () => (await import('./gpu-server/commands.ts')).addConformance),
    part(['protocol'], async () => (await import('./gpu-server/protocol.ts')).addProtocolCommands),
  ],
}
/** The completion between them needs all commands. */
const DOCTOR = part(['doctor'], async () => (await import('./doctor/service-commands.ts')).addDoctor)
const NAMES = part(['names'], async () => (await import('./doctor/service-commands.ts')).addNames)
export const PARTS: readonly Part[] = [...Object.values(SECTIONS).flat(), DOCTOR, NAMES]

function part(names: Part['names'], load: Part['load']): Part {
  return { names, load }
}

/**
 * @param args the command line. If its first word is a command, the program has no others, and starts faster.
 */
export async function programOf(setExit: SetExit, args: readonly string[] = []): Promise<Command> {
  const program = new Command('headroom')
    .description('Runs GPU tasks with VRAM overcommit and fair swapping, and simulates clusters')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(onOneLine(text)) })
  const add = async ({ load }: Part) => {
    const declare = await load()
    declare(program, setExit)
  }
  const [first = ''] = args
  const alone = PARTS.find(({ names }) => names.includes(first))
  if (alone !== undefined) {
    await add(alone)
    return program
  }
  for (const [title, parts] of Object.entries(SECTIONS)) {
    program.commandsGroup(title)
    for (const each of parts) await add(each)
  }
  program.commandsGroup('Help:').helpCommand(true)
  await add(DOCTOR)
  const { addCompletion } = await import('./doctor/service-commands.ts')
  addCompletion(program)
  await add(NAMES)
  return program
}
