/** `headroom node …`: arguments and options. */
import type { Command } from 'commander'
import { calls, remote, withExamples, type SetExit } from '../command/command-shape.ts'
import { timeWithin } from '../command/option-values.ts'
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
      .argument('<setting=value...>', 'overcommit=50, reserve=2Gi'),
    'headroom node set a100-1 overcommit=50 reserve=4Gi',
    'headroom node set a100-1 overcommit=null  # the global default again',
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
}
