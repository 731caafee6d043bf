/** `headroom node …`: arguments and options. */
import { Option, type Command } from 'commander'
import { calls, DRY_RUN, remote, withExamples, type SetExit } from '../command/command-shape.ts'
import { folder, nodeName, timeWithin } from '../command/option-values.ts'
import type { CommandOptions } from '../command/session.ts'

export function addNode(program: Command, setExit: SetExit): void {
  const node = program.command('node').description('GPU nodes; a node is addressed by its name or id')
  withExamples(
    remote(node.command('list').description('list all nodes, in order of registration')),
    'headroom node list -o wide',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeList'))
  withExamples(
    remote(node.command('show').description('show one node and its GPUs').argument('<node>', 'name or id')),
    'headroom node show a100-1',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeShow'))
  withExamples(
    remote(
      node
        .command('set')
        .description(
          'set overrides of a node: overcommit (percent) and reserve (VRAM of each GPU); null removes one',
        ),
    )
      .argument('<node>', 'name or id')
      .argument('<setting=value...>', 'overcommit=50, reserve=2Gi')
      .option('--dry-run', DRY_RUN),
    'headroom node set a100-1 overcommit=50 reserve=4Gi',
    'headroom node set a100-1 overcommit=null  # the global default again',
    'headroom node set a100-1 overcommit=50 --dry-run',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeSet'))
  for (const [verb, what] of [
    ['cordon', 'stop placing tasks on a node; its tasks stay'],
    ['uncordon', 'resume placing tasks on a node; ends a drain'],
  ] as const) {
    withExamples(
      remote(node.command(verb).description(what).argument('<node>', 'name or id')),
      `headroom node ${verb} a100-1`,
    ).action(async (name: string, options: CommandOptions) => {
      const { nodeCordon } = await import('./nodes.ts')
      setExit(await nodeCordon(name, verb === 'cordon', options))
    })
  }
  withExamples(
    remote(
      node
        .command('drain')
        .description('drain a node: no new tasks, and its tasks finish or are requeued; ends with uncordon'),
    )
      .argument('<node>', 'name or id')
      .option('--requeue', 'stop tasks with on_node_loss requeue; they wait for another node')
      .option('--after <time>', 'with --requeue: time to let them finish first', timeWithin(0, 604_800_000)),
    'headroom node drain a100-1',
    'headroom node drain a100-1 --requeue --after 1h',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeDrain'))
  withExamples(
    remote(
      node
        .command('remove')
        .description('forget a node that is gone for good; refused while it is up or has tasks')
        .argument('<node>', 'name or id'),
    ),
    'headroom node remove a100-1',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeRemove'))
  addEnrolment(node, setExit)
}

const MAX_TOKEN_MS = 86_400_000

/** On the broker's host, next to its configuration, and on the new host. */
function addEnrolment(node: Command, setExit: SetExit): void {
  const name = ['<name>', 'NODE_NAME of the host', nodeName] as const
  withExamples(
    atBroker(
      node
        .command('enroll')
        .description('print one command that adds a host to the cluster, and wait until the host has run it')
        .argument(...name),
    )
      .option(
        '--nats <url>',
        'address of the broker as seen from the new host (default: this host and the port of the broker)',
      )
      .addOption(
        new Option('--valid-for <time>', 'time after which the token is refused')
          .argParser(timeWithin(1_000, MAX_TOKEN_MS))
          .default(3_600_000, '1h'),
      ),
    'headroom node enroll gpu-21 -o /etc/headroom/nats.conf --nats nats://ctl:4222',
  ).action(calls(setExit, () => import('../nats/enroll.ts'), 'nodeEnroll'))
  withExamples(
    atBroker(
      node
        .command('unenroll')
        .description('remove the key of a host from the broker, which disconnects the host')
        .argument(...name),
    ),
    'headroom node unenroll gpu-21 -o /etc/headroom/nats.conf',
  ).action(calls(setExit, () => import('../nats/enroll.ts'), 'nodeUnenroll'))
  node
    .command('join')
    .description('on a new host: create its key and register it at the broker with a token of `node enroll`')
    .argument('<token>', 'token printed by `headroom node enroll`; valid once')
    .option('--dir <folder>', 'folder for the key and the variables of the service', folder, '/etc/headroom')
    .option('--force', 'replace the key that this host has')
    .action(calls(setExit, () => import('../nats/join.ts'), 'nodeJoin'))
}

function atBroker(command: Command): Command {
  return command
    .requiredOption('-o, --out <file>', 'broker configuration made by `headroom nats config`')
    .option('--reload <command>', 'command that makes the broker reload it', 'nats-server --signal reload')
}
