/** `headroom config …`: arguments and options. */
import type { Command } from 'commander'
import {
  calls,
  DRY_RUN,
  MAX_ROWS,
  DEFAULT_EVENT_ROWS,
  remote,
  withExamples,
  type SetExit,
} from '../command/command-shape.ts'
import { whole } from '../command/option-values.ts'

export function addConfig(program: Command, setExit: SetExit): void {
  const config = program.command('config').description('the global settings')
  withExamples(
    remote(
      config
        .command('get')
        .description('show all settings, or the value of one setting')
        .argument('[setting]', 'name of the setting'),
    ),
    'headroom config get',
    'headroom config get default_vram_overcommit_percent',
  ).action(calls(setExit, () => import('./config.ts'), 'configGet'))
  withExamples(
    remote(
      config
        .command('set')
        .description('change settings; other settings keep their values')
        .argument('<setting=value...>', 'times and sizes may have a unit (5m, 2Gi)'),
    ).option('--dry-run', DRY_RUN),
    'headroom config set default_vram_overcommit_percent=50 --dry-run',
    'headroom config set default_vram_overcommit_percent=50',
    'headroom config set idle_swap_out_seconds=5m safety_reserve_mib=2Gi max_residency_seconds=null',
  ).action(calls(setExit, () => import('./config.ts'), 'configSet'))
  withExamples(
    remote(
      config.command('history').description('list changes to the settings with author and time, newest last'),
    ).option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS),
    'headroom config history',
  ).action(calls(setExit, () => import('./config.ts'), 'configHistory'))
  withExamples(
    remote(
      config
        .command('restore')
        .description('restore the settings of an earlier revision, as a new revision')
        .argument('<revision>', 'number of the revision'),
    ).option('--dry-run', DRY_RUN),
    'headroom config restore 3 --dry-run',
    'headroom config restore 3',
  ).action(calls(setExit, () => import('./config.ts'), 'configRestore'))
}
