/**
 * `headroom doctor` and `headroom completion`: their arguments. What they do is loaded when one is called.
 */
import { Argument, type Command } from 'commander'
import { remote, withExamples, type SetExit } from './command-shape.ts'
import type { CommandOptions } from './operator/session.ts'

/** As in completion.ts; a test holds them equal. */
const SHELLS = ['bash', 'zsh', 'fish'] as const

export function addServiceCommands(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('doctor')
        .description('look for what keeps headroom from working here; ends with 1 when something fails'),
    ),
    'headroom doctor',
    'CONTROLLER_NATS_URL=nats://broker:4222 headroom doctor -o json',
  ).action(async (options: CommandOptions) => {
    const { doctor } = await import('./doctor.ts')
    setExit(await doctor(options))
  })
  withExamples(
    program
      .command('completion')
      .description('completion for a shell, to be sourced by it')
      .addArgument(new Argument('<shell>', 'which one').choices(SHELLS)),
    'source <(headroom completion bash)',
    'headroom completion fish > ~/.config/fish/completions/headroom.fish',
  ).action(async (shell: (typeof SHELLS)[number]) => {
    const { completionScript } = await import('./completion.ts')
    process.stdout.write(completionScript(program, shell))
  })
}
