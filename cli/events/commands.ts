/** `headroom events` and `headroom decisions`: arguments and options. */
import { Option, type Command } from 'commander'
import { DECISION_KINDS } from '../../controller/model/decision.ts'
import {
  calls,
  MAX_ROWS,
  DEFAULT_EVENT_ROWS,
  remote,
  withExamples,
  type SetExit,
} from '../command/command-shape.ts'
import { notedLinks, whole } from '../command/option-values.ts'
import type { VerifyEventsOptions } from './verify-events.ts'

export function addEvents(program: Command, setExit: SetExit): void {
  const events = withExamples(
    remote(program.command('events').description('list events, oldest first'))
      .option('-f, --follow', 'keep printing new events until Ctrl-C')
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <seq>', 'start after this event', whole(0, 999_999_999_999))
      .option('--task <task>', 'only of this task (id or name)')
      .option('--node <node>', 'only of this node, by name or id')
      .option('--kind <kind>', 'only this kind, or several kinds separated by commas'),
    'headroom events --follow',
    'headroom events --kind swap_decided,swap_in_decided',
    'headroom events --node a100-1 --last 100 -o wide',
  ).action(calls(setExit, () => import('./events.ts'), 'events'))
  withExamples(
    events
      .command('verify')
      .description('check that the event log is unchanged since it was written; exits with 1 when it is not')
      .argument(
        '[path]',
        'data directory, store file or a copy of one (default: the store of the controller)',
      )
      .addOption(
        new Option(
          '--noted <seq:hash>',
          'NUMBER:HASH that an earlier verify printed, to compare with; may be repeated',
        ).argParser(notedLinks),
      )
      .option('--json', 'print the result as JSON'),
    'headroom events verify',
    'headroom events verify backup/headroom.db --noted 48213:5f0c…',
  ).action(async (path: string | undefined, options: VerifyEventsOptions) => {
    const { verifyEventLog } = await import('./verify-events.ts')
    setExit(await verifyEventLog(path, options, process.env))
  })
}

export function addDecisions(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('decisions')
        .description(
          'list decisions and their inputs: placements, swaps, growths; newest last, or one in detail',
        )
        .argument('[number]', 'number of the decision'),
    )
      .option('--task <task>', 'about this task (id or name), or with it as victim')
      .option('--node <node>', 'only on this node, by name or id')
      .addOption(new Option('--kind <kind>', 'only of this kind').choices(DECISION_KINDS))
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <number>', 'start after this decision', whole(0, 999_999_999_999)),
    'headroom decisions --kind swap_out --node a100-1',
    'headroom decisions --task 0b6f4c1e --last 5',
    'headroom decisions 4711',
  ).action(calls(setExit, () => import('./decisions.ts'), 'decisions'))
}
