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
      .option('--task <task>', 'only events of this task (name or ID)')
      .option('--node <node>', 'only events of this node (name or ID)')
      .option('--kind <kind>', 'only events of this kind, or of several kinds separated by commas'),
    'headroom events --follow',
    'headroom events --kind swap_decided,swap_in_decided',
    'headroom events --node a100-1 --last 100 -o wide',
  ).action(calls(setExit, () => import('./events.ts'), 'events'))
  withExamples(
    events
      .command('verify')
      .description('check that the event log has not changed since it was written; exits with 1 if it has')
      .argument(
        '[path]',
        'data directory, store file, or a copy of either (default: the store of the controller)',
      )
      .addOption(
        new Option(
          '--noted <seq:hash>',
          'NUMBER:HASH printed by an earlier `headroom events verify`, for comparison; may be repeated',
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
          'list decisions (placements, swaps and growths), newest last, or show one with its inputs',
        )
        .argument('[number]', 'number of the decision'),
    )
      .option('--task <task>', 'only decisions about this task (name or ID), or with this task as a victim')
      .option('--node <node>', 'only decisions on this node (name or ID)')
      .addOption(new Option('--kind <kind>', 'only decisions of this kind').choices(DECISION_KINDS))
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <number>', 'start after this decision', whole(0, 999_999_999_999)),
    'headroom decisions --kind swap_out --node a100-1',
    'headroom decisions --task 0b6f4c1e --last 5',
    'headroom decisions 4711',
  ).action(calls(setExit, () => import('./decisions.ts'), 'decisions'))
}
