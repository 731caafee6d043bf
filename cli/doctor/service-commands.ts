/** `headroom doctor`, `completion` and `names`: their arguments. Their actions are loaded when called. */
import { Argument, type Command } from 'commander'
import { NAME_KINDS, SHELLS, type Shell } from '../command/completion.ts'
import { calls, remote, withExamples, withServer, type SetExit } from '../command/command-shape.ts'

export function addDoctor(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('doctor')
        .description(
          'check whether this machine meets the requirements of Headroom; exits with 1 if a check fails',
        ),
    ),
    'headroom doctor',
    'CONTROLLER_NATS_URL=nats://broker:4222 headroom doctor -o json',
  ).action(calls(setExit, () => import('./doctor.ts'), 'doctor'))
}

/** @param program has all commands */
export function addCompletion(program: Command): void {
  withExamples(
    program
      .command('completion')
      .description('print a completion script to source in your shell')
      .addArgument(new Argument('<shell>', 'name of the shell').choices(SHELLS)),
    'source <(headroom completion bash)',
    'headroom completion fish > ~/.config/fish/completions/headroom.fish',
  ).action(async (shell: Shell) => {
    const { completionScript } = await import('../command/completion.ts')
    process.stdout.write(completionScript(program, shell))
  })
}

export function addNames(program: Command, setExit: SetExit): void {
  withServer(
    program
      .command('names')
      .description('print names of open tasks, nodes or groups, one per line, for shell completion')
      .addArgument(new Argument('<kind>', 'kind of names').choices(NAME_KINDS)),
  ).action(calls(setExit, () => import('../command/names.ts'), 'names'))
}
