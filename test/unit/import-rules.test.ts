import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { cruiseImports } from '../../tools/imports/cruise-imports.ts'
import { importCircles } from '../../tools/imports/import-circles.ts'

const CONFIGURATION: string = '../../.dependency-cruiser.cjs'

/**
 * A rule that matches nothing is as silent as a rule that is obeyed, so each rule meets an import that breaks
 * it.
 */
const FORBIDDEN: Record<string, readonly (readonly [from: string, to: string])[]> = {
  protocol: [['protocol/messages.ts', 'controller/model/task.ts']],
  structures: [['controller/structures/order.ts', 'controller/model/task.ts']],
  model: [['controller/model/node.ts', 'controller/ports/clock.ts']],
  ports: [['controller/ports/bus.ts', 'controller/engine/cycle.ts']],
  placement: [
    ['controller/policy/placement/queue.ts', 'controller/policy/swap/swap.ts'],
    ['controller/policy/placement/feasible.ts', 'controller/ports/clock.ts'],
  ],
  swap: [['controller/policy/swap/order.ts', 'controller/policy/placement/schedule.ts']],
  metrics: [['controller/metrics/fairness.ts', 'controller/policy/swap/swap.ts']],
  facts: [['controller/state/facts.ts', 'controller/state/index/pool.ts']],
  index: [['controller/state/index/pool.ts', 'controller/state/cluster.ts']],
  state: [['controller/state/cluster.ts', 'controller/engine/cycle.ts']],
  lifecycle: [['controller/engine/apply/lifecycle/stops.ts', 'controller/engine/apply/vram/collector.ts']],
  apply: [['controller/engine/apply/vram/collector.ts', 'controller/engine/inputs/nodes/liveness.ts']],
  'node-inputs': [
    ['controller/engine/inputs/nodes/liveness.ts', 'controller/engine/inputs/commands/drain.ts'],
  ],
  inputs: [['controller/engine/inputs/commands/drain.ts', 'controller/engine/cycle.ts']],
  engine: [['controller/engine/reduce.ts', 'controller/query/views.ts']],
  query: [['controller/query/views.ts', 'controller/api/server.ts']],
  series: [['controller/series/sampler.ts', 'controller/api/server.ts']],
  recording: [['controller/recording/input-recorder.ts', 'controller/wire/outbound.ts']],
  wire: [['controller/wire/inbound.ts', 'controller/api/server.ts']],
  api: [['controller/api/http/errors.ts', 'controller/wire/outbound.ts']],
  adapters: [['controller/adapters/nats-bus.ts', 'simulator/world/world.ts']],
  controller: [
    ['controller/controller.ts', 'simulator/world/world.ts'],
    ['controller/api/live.ts', 'gpu-server/server.ts'],
    ['controller/query/views.ts', 'cli/main.ts'],
    ['controller/wire/names.ts', 'ui/app.tsx'],
  ],
  'nothing-inside-imports-the-whole': [['controller/api/docs/openapi.ts', 'controller/controller.ts']],
  'gpu-server-core': [['gpu-server/core/ledger.ts', 'gpu-server/server.ts']],
  'gpu-server': [['gpu-server/agent.ts', 'controller/engine/cycle.ts']],
  'operator-contract': [['operator/contract/names.ts', 'operator/ports/kube-api.ts']],
  'operator-ports': [['operator/ports/kube-api.ts', 'operator/adapters/kube-client.ts']],
  'operator-admission': [['operator/admission/review.ts', 'operator/adapters/kube-client.ts']],
  'operator-plan': [['operator/plan/plan-pods.ts', 'operator/ports/kube-api.ts']],
  'operator-reflector': [['operator/reflector/reflector.ts', 'operator/memory-api/memory-api.ts']],
  'operator-memory-api': [['operator/memory-api/memory-api.ts', 'operator/adapters/kube-client.ts']],
  'operator-placing': [['operator/placing/claims.ts', 'operator/adapters/kube-client.ts']],
  operator: [['operator/adapters/kube-client.ts', 'controller/adapters/nats-bus.ts']],
  simulator: [
    ['simulator/trace/device.ts', 'controller/controller.ts'],
    ['simulator/network/sim-bus.ts', 'gpu-server/core/outbox.ts'],
    ['simulator/report/digest.ts', 'controller/adapters/memory-store.ts'],
  ],
  'simulator-composition': [['simulator/world/world.ts', 'controller/adapters/sqlite/store.ts']],
  'simulator-recording': [
    ['simulator/experiment/recording/redecide.ts', 'controller/adapters/sqlite/store.ts'],
  ],
  'simulator-kernel': [['simulator/kernel/virtual-clock.ts', 'simulator/document/check.ts']],
  'simulator-document': [['simulator/document/check.ts', 'simulator/trace/work.ts']],
  'simulator-trace': [['simulator/trace/work.ts', 'simulator/scenario/schema.ts']],
  'simulator-scenario': [['simulator/scenario/metrics.ts', 'simulator/results/result.ts']],
  'simulator-results': [['simulator/results/result.ts', 'simulator/network/passage.ts']],
  'simulator-network': [['simulator/network/passage.ts', 'simulator/fleet/fleet.ts']],
  'simulator-fleet': [['simulator/fleet/fleet.ts', 'simulator/world/start-world.ts']],
  'simulator-world': [['simulator/world/client.ts', 'simulator/run/run.ts']],
  'simulator-snapshot': [['simulator/snapshot/snapshot.ts', 'simulator/run/run.ts']],
  'simulator-run': [['simulator/run/run-loop.ts', 'simulator/check/checker.ts']],
  'simulator-check': [['simulator/check/checker.ts', 'simulator/experiment/sweep/sweep.ts']],
  'simulator-experiment': [['simulator/experiment/counterfactual.ts', 'simulator/twin/fork.ts']],
  'simulator-twin': [['simulator/twin/fork.ts', 'simulator/session/session.ts']],
  'simulator-session': [['simulator/session/session.ts', 'simulator/exercise/brief.ts']],
  'simulator-exercise': [['simulator/exercise/brief.ts', 'simulator/report/summary.ts']],
  ui: [['ui/pages/tasks.tsx', 'controller/model/task.ts']],
  'types-of-the-schema-only': [
    ['ui/pages/nodes.tsx', 'controller/api/nodes/schema.ts'],
    ['clients/typescript/client.ts', 'controller/api/tasks/schema.ts'],
  ],
  clients: [['clients/typescript/client.ts', 'controller/api/tasks/present.ts']],
  services: [['services/live/live.ts', 'cli/main.ts']],
  cli: [['cli/sim/sim.ts', 'ui/app.tsx']],
  'nothing-imports-test': [['cli/run/run.ts', 'test/support/builder.ts']],
  'pure-controller-packages': [
    ['controller/engine/log.ts', 'node_modules/pino/index.js'],
    ['gpu-server/core/lease.ts', 'node_modules/pino/index.js'],
  ],
  'simulator-packages': [['simulator/check/safety.ts', 'node_modules/pino/index.js']],
  'no-cycles': [['protocol/egg.ts', 'protocol/hen.ts']],
  resolvable: [['cli/absent.ts', 'protocol/not-there.ts']],
  'declared-packages': [['cli/output/progress.ts', 'node_modules/vitest/index.js']],
  'names-say-something': [['cli/verbs.ts', 'cli/utils.ts']],
}

/** The reverse import completes the cycle; a cycle is reported once. */
const WAY_BACK = ['protocol/hen.ts', 'protocol/egg.ts'] as const

const ALLOWED: readonly (readonly [from: string, to: string, keyword?: 'import type'])[] = [
  ['controller/model/task.ts', 'protocol/units.ts'],
  ['controller/policy/placement/schedule.ts', 'controller/model/task.ts'],
  ['controller/engine/cycle.ts', 'controller/policy/placement/schedule.ts'],
  ['controller/engine/cycle.ts', 'controller/ports/clock.ts'],
  ['controller/api/server.ts', 'controller/engine/cycle.ts'],
  ['controller/series/sampler.ts', 'controller/query/views.ts'],
  ['controller/api/server.ts', 'controller/series/series.ts'],
  ['controller/api/server.ts', 'node_modules/pino/index.js'],
  ['controller/wire/outbound.ts', 'controller/engine/cycle.ts'],
  ['controller/adapters/memory-store.ts', 'controller/ports/store.ts'],
  ['controller/controller.ts', 'controller/adapters/memory-store.ts'],
  ['gpu-server/server.ts', 'gpu-server/core/outbox.ts'],
  ['gpu-server/core/outbox.ts', 'controller/ports/clock.ts'],
  ['operator/adapters/kube-client.ts', 'operator/ports/kube-api.ts'],
  ['operator/contract/names.ts', 'controller/model/vram.ts'],
  ['simulator/kernel/seeded-random.ts', 'controller/ports/random.ts'],
  ['simulator/kernel/seeded-random.ts', 'node_modules/seedrandom/index.js'],
  ['simulator/world/world.ts', 'controller/controller.ts'],
  ['simulator/world/world.ts', 'gpu-server/core/outbox.ts'],
  ['simulator/run/run.ts', 'simulator/world/world.ts'],
  ['controller/recording/input-recorder.ts', 'controller/engine/input-tap.ts'],
  ['simulator/experiment/recording/redecide.ts', 'controller/controller.ts'],
  ['cli/main.ts', 'simulator/run/run.ts'],
  ['cli/main.ts', 'gpu-server/server.ts'],
  ['clients/typescript/client.ts', 'controller/api/tasks/schema.ts', 'import type'],
  ['ui/app.tsx', 'controller/api/nodes/schema.ts', 'import type'],
  ['test/unit/a.test.ts', 'controller/adapters/memory-store.ts'],
  ['test/unit/a.test.ts', 'node_modules/vitest/index.js'],
]

let root: string | undefined

afterEach(() => {
  if (root !== undefined) rmSync(root, { recursive: true })
  root = undefined
})

test('Every import rule catches an import that breaks it', async () => {
  const planted = Object.entries(FORBIDDEN).flatMap(([rule, imports]) =>
    imports.map(([from, to]) => ({ rule, from, to })),
  )
  root = plantProject([...planted.map(({ from, to }) => [from, to] as const), WAY_BACK])
  const { violations } = await cruiseImports(root)
  const caught = new Set(violations.map(({ rule, from }) => `${rule}: ${from}`))
  expect(
    planted.map(({ rule, from }) => `${rule}: ${from}`).filter((violation) => !caught.has(violation)),
  ).toEqual([])
})

test('The imports that the architecture allows are accepted', async () => {
  root = plantProject(ALLOWED)
  const { violations, unseen, importCount } = await cruiseImports(root)
  expect(violations).toEqual([])
  expect(unseen).toEqual([])
  expect(importCount).toBe(ALLOWED.length)
})

test('Every rule of the configuration is tested here', async () => {
  const { default: configuration }: { default: { forbidden: { name: string }[] } } = await import(
    CONFIGURATION
  )
  const untried = configuration.forbidden.filter((rule) => !Object.hasOwn(FORBIDDEN, rule.name))
  expect(untried).toEqual([])
})

/** Creates a temporary project of files that contain exactly these imports. */
function plantProject(
  imports: readonly (readonly [from: string, to: string, keyword?: 'import type'])[],
): string {
  const project = mkdtempSync(join(tmpdir(), 'headroom-imports-'))
  const files = new Map<string, string>()
  for (const [from, to, keyword] of imports) {
    const line = `${keyword ?? 'import'} ${keyword ? '{ it } from ' : ''}'${specifier(from, to)}'\n`
    files.set(from, `${files.get(from) ?? ''}${line}`)
    if (to !== 'protocol/not-there.ts') files.set(to, files.get(to) ?? '')
  }
  files.set(
    'package.json',
    JSON.stringify({ dependencies: { pino: '1', seedrandom: '1' }, devDependencies: { vitest: '1' } }),
  )
  for (const name of ['pino', 'seedrandom', 'vitest'])
    files.set(`node_modules/${name}/package.json`, JSON.stringify({ name, main: 'index.js' }))
  for (const [file, content] of files) {
    mkdirSync(dirname(join(project, file)), { recursive: true })
    writeFileSync(join(project, file), content)
  }
  return project
}

function specifier(from: string, to: string): string {
  const packageName = /^node_modules\/([^/]+)/.exec(to)?.[1]
  return packageName ?? `./${relative(dirname(from), to)}`
}

test('A cycle that contains a type-only import is a cycle of files, but not of folders', () => {
  const imports = [
    { from: 'a/hen.ts', to: 'b/egg.ts', isTypeOnly: false },
    { from: 'b/egg.ts', to: 'a/hen.ts', isTypeOnly: true },
    { from: 'b/egg.ts', to: 'c/nest.ts', isTypeOnly: false },
  ]
  expect(importCircles(imports)).toEqual({ files: [['a/hen.ts', 'b/egg.ts']], folders: [] })
})

test('Folders that import values from each other form a cycle, even through different files', () => {
  const imports = [
    { from: 'a/one.ts', to: 'b/one.ts', isTypeOnly: false },
    { from: 'b/two.ts', to: 'c/two.ts', isTypeOnly: false },
    { from: 'c/three.ts', to: 'a/three.ts', isTypeOnly: false },
    { from: 'c/three.ts', to: 'd/three.ts', isTypeOnly: false },
  ]
  expect(importCircles(imports)).toEqual({ files: [], folders: [['a', 'b', 'c']] })
})
