/**
 * Draws when tasks return eagerly, and sometimes GPUs with room for it. From a separate random stream: the
 * other draws of a seed do not depend on it.
 */
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument } from './document.ts'

type Drawn = Pick<FuzzDocument, 'fleet' | 'config' | 'workload'>

const LARGER_PERCENT = 20
/** Twice the VRAM that must stay free on a GPU after an eager return. */
const MORE_MIB = 2048

export function drawEager(dice: FuzzRandom, drawn: Drawn): Drawn {
  const seconds = dice.oneOf(['default', null, 0, 2, 10, 60] as const)
  const isLarger = dice.chance(LARGER_PERCENT)
  return {
    ...drawn,
    fleet: isLarger ? drawn.fleet.map(larger) : drawn.fleet,
    config: seconds === 'default' ? drawn.config : { ...drawn.config, eager_swap_in_seconds: seconds },
  }
}

function larger(node: Entry): Entry {
  const gpu = node['gpu'] as Entry
  return { ...node, gpu: { ...gpu, vram_mib: Number(gpu['vram_mib']) + MORE_MIB } }
}
