/**
 * A random schedule of faults, drawn from one seed: losses, duplicates, delays past every timeout,
 * partitions, crashes; then all faults end.
 */
import type { OnNodeLoss } from '../../protocol/units.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { FaultWorld, type FaultWorldOptions } from './fault-world.ts'
import { NO_FAULTS } from './faulty-network.ts'

const POLICIES: readonly OnNodeLoss[] = ['wait', 'fail', 'requeue', 'requeue']
const FAULTS_UNTIL_MS = 150_000
/** Longer than leases, timeouts and windows together. */
const SLOWEST_MS = 60_000
/** After the end of the faults, every task ends within this time, or never does. */
const HEALED_WITHIN_MS = 900_000

/** Returns the violations in the world of this seed, normally none. */
export async function violationsOf(
  seed: number,
  options: FaultWorldOptions = {},
): Promise<readonly string[]> {
  const random = seededStream(seed, 'schedule')
  const below = (n: number): number => Math.floor(random() * n)
  const nodes = 2 + below(4)
  const world = new FaultWorld({ ...options, seed, nodes, commitMs: below(2) * 30 })
  await world.startAll()
  const names = [...world.hosts.keys()]
  const oneOf = (): string => names[below(names.length)] as string
  let submitted = 0
  for (let at = 1_000; at < FAULTS_UNTIL_MS; at += 500 + below(6_000)) {
    const what = below(12)
    world.at(at, () => {
      if (what <= 3) {
        const onNodeLoss = POLICIES[below(POLICIES.length)] as OnNodeLoss
        world.submit({
          id: `t${submitted++}`,
          ms: 1_000 + below(40_000),
          onNodeLoss,
          vramMib: 100 + below(500),
        })
      } else if (what <= 5) world.network.cutOff.add(oneOf())
      else if (what === 6) world.network.cutOff.clear()
      else if (what === 7) {
        const name = oneOf()
        world.killServer(name)
        if (below(4) === 0) world.wipe(name)
      } else if (what === 8) for (const name of names) world.startServer(name)
      else if (what === 9) world.restartController()
      else if (what === 10)
        world.controller.commands.cancelTask(`t${below(submitted + 1)}`, 'operator', () => {})
      else {
        world.network.faults = {
          drop: below(3) * 0.15,
          duplicate: below(2) * 0.3,
          slow: below(3) * 0.1,
          slowMs: SLOWEST_MS,
          usualMs: 1 + below(400),
        }
      }
    })
  }
  await world.run(FAULTS_UNTIL_MS)
  world.network.faults = NO_FAULTS
  world.network.cutOff.clear()
  world.restartController()
  for (const name of names) world.startServer(name)
  const isOver = (): boolean => [...world.acknowledged].every((id) => world.isFinal(id))
  if (!(await world.until(isOver, HEALED_WITHIN_MS))) {
    const left = [...world.acknowledged]
      .filter((id) => !world.isFinal(id))
      .map((id) => `${id} is ${world.stateOf(id)} on ${world.livesOn(id).join()}`)
    world.violations.push(`healed, and not over: ${left.join('; ')}`)
  }
  await world.run(5_000)
  await world.checkDurable()
  return [...world.violations, ...world.faults.map(String)]
}
