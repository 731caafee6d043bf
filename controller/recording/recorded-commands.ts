import type { Commands } from '../model/command.ts'
import type { InputSink } from './input-sink.ts'
import { withoutCommandLine } from './without-secrets.ts'

/** All commands; a missing one does not compile. */
export const COMMAND_NAMES = [
  'submitTask',
  'submitOnce',
  'updateTask',
  'cancelTask',
  'cancelTaskNow',
  'requeueTask',
  'holdTask',
  'releaseTask',
  'swapOutTask',
  'swapInTask',
  'keepalive',
  'putConfig',
  'putNodeConfig',
  'putGroup',
  'deleteGroup',
  'setCordon',
  'drainNode',
  'forgetNode',
  'releaseRequeueFreeze',
  'finishRecovery',
  'adoptAttempt',
  'stopAttempt',
] as const satisfies readonly (keyof Commands)[]

/** Does not compile while a command is missing above. */
type Known = (typeof COMMAND_NAMES)[number]
const ALL: Exclude<keyof Commands, Known> extends never ? true : never = true

/** Calls any command by its name; the last argument is the answer. */
export type AnyCommand = (...args: readonly unknown[]) => void

/** Wraps commands so that each call is recorded, without command lines. */
export function recordedCommands(commands: Commands, recorder: InputSink): Commands {
  const entries = COMMAND_NAMES.map((name) => {
    const call = (commands[name] as AnyCommand).bind(commands)
    const noted: AnyCommand = (...args) =>
      recorder.take({ k: 'command', name, args: args.slice(0, -1).map(withoutCommandLine) }, () =>
        call(...args),
      )
    return [name, noted] as const
  })
  return ALL && (Object.fromEntries(entries) as unknown as Commands)
}
