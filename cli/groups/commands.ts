/** `headroom group …`: arguments and options. */
import type { Command } from 'commander'
import { calls, DRY_RUN, remote, repeatable, withExamples, type SetExit } from '../command/command-shape.ts'

export function addGroup(program: Command, setExit: SetExit): void {
  const group = program
    .command('group')
    .description('named sets of nodes; tasks that target a group run only on its nodes')
  withExamples(
    remote(group.command('list').description('list all groups, by name')),
    'headroom group list',
  ).action(calls(setExit, () => import('./groups.ts'), 'groupList'))
  withExamples(
    remote(group.command('show').description('show one group').argument('<group>', 'name of the group')),
    'headroom group show training -o yaml',
  ).action(calls(setExit, () => import('./groups.ts'), 'groupShow'))
  withExamples(
    remote(
      group
        .command('create')
        .description('create a group; its nodes leave the common pool immediately')
        .argument('<group>', 'name of the group'),
    )
      .option('--description <text>', 'purpose of the group')
      .option('--node <node>', 'a node of the group (name or ID); may be repeated', repeatable, [])
      .option('--dry-run', DRY_RUN),
    'headroom group create training --node a100-1 --node a100-2',
  ).action(calls(setExit, () => import('./groups.ts'), 'groupCreate'))
  withExamples(
    remote(group.command('delete').description('delete a group').argument('<group>', 'name of the group'))
      .option('--force', 'delete the group even if pending tasks target it')
      .option('--dry-run', DRY_RUN),
    'headroom group delete training',
    'headroom group delete training --dry-run',
  ).action(calls(setExit, () => import('./groups.ts'), 'groupDelete'))
  addGroupMembers(group, setExit)
}

function addGroupMembers(group: Command, setExit: SetExit): void {
  const member = (verb: string, what: string): Command =>
    remote(
      group
        .command(verb)
        .description(what)
        .argument('<group>', 'name of the group')
        .argument('<node>', 'name or ID of the node'),
    ).option('--dry-run', DRY_RUN)
  withExamples(member('add-node', 'add a node to a group'), 'headroom group add-node training a100-3').action(
    calls(setExit, () => import('./groups.ts'), 'groupAddNode'),
  )
  withExamples(
    member('remove-node', 'remove a node from a group'),
    'headroom group remove-node training a100-3',
  ).action(calls(setExit, () => import('./groups.ts'), 'groupRemoveNode'))
}
