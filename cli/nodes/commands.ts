/** `headroom node …`: arguments and options. */
import { Option, type Command } from 'commander'
import { calls, DRY_RUN, remote, withExamples, type SetExit } from '../command/command-shape.ts'
import { folder, nodeName, timeWithin } from '../command/option-values.ts'
import type { CommandOptions } from '../command/session.ts'

export function addNode(program: Command, setExit: SetExit): void {
  const node = program.command('node').description('GPU nodes; commands accept the name or ID of a node')
  withExamples(
    remote(node.command('list').description('list all nodes, in order of registration')),
    'headroom node list -o wide',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeList'))
  withExamples(
    remote(node.command('show').description('show one node and its GPUs').argument('<node>', 'name or ID')),
    'headroom node show a100-1',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeShow'))
  withExamples(
    remote(
      node
        .command('set')
        .description(
          'set overrides of a node: overcommit (percent) and reserve (VRAM of each GPU); null removes an ' +
            'override',
        ),
    )
      .argument('<node>', 'name or ID')
      .argument('<setting=value...>', 'overcommit=50, reserve=2Gi')
      .option('--dry-run', DRY_RUN),
    'headroom node set a100-1 overcommit=50 reserve=4Gi',
    'headroom node set a100-1 overcommit=null  # use the global default again',
    'headroom node set a100-1 overcommit=50 --dry-run',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeSet'))
  for (const [verb, what] of [
    ['cordon', 'stop placing tasks on a node; its tasks continue'],
    ['uncordon', 'resume placing tasks on a node; ends a drain'],
  ] as const) {
    withExamples(
      remote(node.command(verb).description(what).argument('<node>', 'name or ID')),
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
        .description(
          'drain a node: it receives no new tasks, and its tasks finish or are requeued; `node uncordon` ' +
            'ends the drain',
        ),
    )
      .argument('<node>', 'name or ID')
      .option('--requeue', 'stop tasks with on_node_loss=requeue, and requeue them to start on other nodes')
      .option(
        '--after <time>',
        'with --requeue: time for tasks to finish before they are ' + 'stopped',
        timeWithin(0, 604_800_000),
      ),
    'headroom node drain a100-1',
    'headroom node drain a100-1 --requeue --after 1h',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodeDrain'))
  withExamples(
    remote(
      node
        .command('remove')
        .description('remove a node that will not return; refused while the node is up or has tasks')
        .argument('<node>', 'name or ID'),
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
        .description(
          'print a command that adds a host to the cluster, and wait until it has been run on the host',
        )
        .argument(...name),
    )
      .option(
        '--nats <url>',
        'address of the broker as seen from the new host (default: this host and the port of the broker)',
      )
      .addOption(
        new Option('--valid-for <time>', 'time after which the token expires')
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
    .description(
      'add this host to a cluster: create its key, and register it with the broker using a token from ' +
        '`node enroll`',
    )
    .argument('<token>', 'token printed by `headroom node enroll`; can be used only once')
    .option(
      '--dir <folder>',
      'folder for the key and the environment file of the service',
      folder,
      '/etc/headroom',
    )
    .option('--force', 'replace the existing key of this host')
    .action(calls(setExit, () => import('../nats/join.ts'), 'nodeJoin'))
}

function atBroker(command: Command): Command {
  return command
    .requiredOption('-o, --out <file>', 'broker configuration created by `headroom nats config`')
    .option(
      '--reload <command>',
      'command that makes the broker reload its configuration',
      'nats-server --signal reload',
    )
}
