/**
 * Commands for a store that went back to an earlier state: their arguments and options. Their actions are
 * loaded when called.
 */
import type { Command } from 'commander'
import { calls, remote, withExamples, type SetExit } from '../command/command-shape.ts'

export function addRecoveryCommands(program: Command, setExit: SetExit): void {
  const recovery = program
    .command('recovery')
    .description('recovery after the store has lost changes, based on the reports of the nodes')
  withExamples(
    remote(
      recovery
        .command('status')
        .description('show whether placements are paused, and which nodes are missing or ahead of the store'),
    ),
    'headroom recovery status',
  ).action(calls(setExit, () => import('./recovery.ts'), 'recoveryStatus'))
  withExamples(
    remote(
      recovery
        .command('finish')
        .description('end the recovery without waiting for missing nodes (requires role admin)'),
    ),
    'headroom recovery finish',
  ).action(calls(setExit, () => import('./recovery.ts'), 'recoveryFinish'))
  addAttempts(program, setExit)
}

function addAttempts(program: Command, setExit: SetExit): void {
  const attempts = program.command('attempts').description('running attempts that are missing from the store')
  withExamples(
    remote(
      attempts
        .command('list')
        .description(
          'list the running attempts that are missing from the store, ' + 'with the records of their servers',
        ),
    ),
    'headroom attempts list -o wide',
  ).action(calls(setExit, () => import('./recovery.ts'), 'attemptsList'))
  withExamples(
    remote(attempts.command('adopt').description('adopt a running attempt as a task'))
      .argument('<attempt>', 'TASK/ATTEMPT')
      .requiredOption('--owner <name>', 'owner of the task; verify it before you adopt the attempt')
      .option('--name <name>', 'name of the task (default: the name in the record of the server)')
      .option('--node <node>', 'node (name or ID); required if several nodes run this attempt'),
    'headroom attempts adopt 5b0f7a9e-6a53-4f0a-9d5c-0e9f3c1f7c11/2 --owner ada',
  ).action(calls(setExit, () => import('./recovery.ts'), 'attemptsAdopt'))
  withExamples(
    remote(attempts.command('stop').description('stop a running attempt'))
      .argument('<attempt>', 'TASK/ATTEMPT')
      .option('--node <node>', 'node (name or ID); required if several nodes run this attempt'),
    'headroom attempts stop 5b0f7a9e-6a53-4f0a-9d5c-0e9f3c1f7c11/2',
  ).action(calls(setExit, () => import('./recovery.ts'), 'attemptsStop'))
}
