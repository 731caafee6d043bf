/** How the GPUs of each node copy and start tasks: as observed, otherwise as the profile says. */
import type { MethodSpeeds, NodeSpeeds } from '../../controller/ports/twin.ts'
import type { GpuModel } from '../scenario/scenario.ts'
import { type MethodProfile, SWAP_PROFILES, type SwapProfile } from '../scenario/swap-profiles.ts'

export type LearnedModel = Pick<GpuModel, 'swap' | 'swapMethods' | 'efficiencyPermille' | 'startMs'>

/** @returns the model of a node, by its id */
export function learnedModels(
  speeds: readonly NodeSpeeds[],
  profile: SwapProfile = SWAP_PROFILES['stock-driver'],
): (nodeId: string) => LearnedModel {
  const byNode = new Map(speeds.map((each) => [each.nodeId, each]))
  return (nodeId) => {
    const { methods, starts } = byNode.get(nodeId) ?? NOTHING
    const learned = new Map(methods.map((each) => [each.method, each]))
    const [driver, hooks, engine] = [learned.get('driver'), learned.get('hooks'), learned.get('engine')]
    return {
      swap: driver === undefined ? profile : profileOf(driver),
      ...(hooks === undefined && engine === undefined ? {} : { swapMethods: methodsOf({ hooks, engine }) }),
      efficiencyPermille: [1000],
      startMs: starts.ms,
    }
  }
}

const NOTHING: Pick<NodeSpeeds, 'methods' | 'starts'> = { methods: [], starts: { observed: 0, ms: 0 } }

function methodsOf({
  hooks,
  engine,
}: {
  readonly hooks: MethodSpeeds | undefined
  readonly engine: MethodSpeeds | undefined
}) {
  const of = (method: MethodSpeeds): MethodProfile => ({
    swap: profileOf(method),
    residualMib: method.residualMib,
  })
  return {
    ...(hooks === undefined ? {} : { hooks: of(hooks) }),
    ...(engine === undefined ? {} : { engine: of(engine) }),
  }
}

function profileOf(method: MethodSpeeds): SwapProfile {
  return {
    outMibPerS: method.out.mibPerS,
    outFixedMs: method.out.fixedMs,
    inMibPerS: method.in.mibPerS,
    inFixedMs: method.in.fixedMs,
  }
}

/** For `assumes` of a forecast: one sentence without its end. */
export function assumedSpeeds(speeds: readonly NodeSpeeds[]): string {
  const observed = speeds.filter(({ methods }) => methods.length > 0)
  if (observed.length === 0) return 'swaps take as long as with the stock driver: none was observed yet'
  const copies = observed.flatMap(({ methods }) =>
    methods.map((each) => each.out.observed + each.in.observed),
  )
  const count = copies.reduce((sum, each) => sum + each, 0)
  return (
    `swaps take as long as the latest ${count} on ${observed.length} ` +
    `${observed.length === 1 ? 'node' : 'nodes'}, elsewhere as with the stock driver`
  )
}
