/** The GPUs of a node, from its annotation. */
import { MAX_GPUS, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { Mib } from '../../protocol/units.ts'
import { annotationPath, faulty, type Parsed, quoted, valid } from '../contract/field-fault.ts'
import type { ObjectMeta } from '../contract/kubernetes.ts'
import { NODE_GPUS, NODE_LABELS } from '../contract/names.ts'

export interface DeclaredGpu {
  readonly uuid: string
  readonly model: string
  readonly vramMib: Mib
}

const UUID = /^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/
const MAX_MODEL = 200
const MAX_TEXT = 16_384

/** Whether the GPUs of the node belong to Headroom. */
export function isEnabled({ labels = {} }: ObjectMeta): boolean {
  return labels[NODE_LABELS.enabled] === 'true'
}

/** Returns the declared GPUs; an empty list without the annotation. */
export function declaredGpus({ annotations = {} }: ObjectMeta): Parsed<readonly DeclaredGpu[]> {
  const text = annotations[NODE_GPUS]
  const path = annotationPath(NODE_GPUS)
  if (text === undefined) return valid([])
  if (text.length > MAX_TEXT) return faulty(path, `must have at most ${MAX_TEXT} characters`)
  const list = parsed(text)
  if (!Array.isArray(list) || list.length > MAX_GPUS)
    return faulty(path, `must be a JSON list of at most ${MAX_GPUS} GPUs, not ${quoted(text)}`)
  const gpus: DeclaredGpu[] = []
  for (const [index, each] of list.entries()) {
    const at = `${path}[${index}]`
    const { uuid, model = '', vram_mib: vramMib } = (each ?? {}) as Readonly<Record<string, unknown>>
    if (typeof uuid !== 'string' || !UUID.test(uuid))
      return faulty(`${at}.uuid`, `must be the UUID of a GPU, not ${quoted(uuid)}`)
    if (gpus.some((other) => other.uuid === uuid))
      return faulty(`${at}.uuid`, `${quoted(uuid)} is there twice`)
    if (typeof model !== 'string' || model.length > MAX_MODEL)
      return faulty(`${at}.model`, `must be a string of at most ${MAX_MODEL} characters`)
    const isSize =
      typeof vramMib === 'number' && Number.isInteger(vramMib) && vramMib > 0 && vramMib <= MAX_VRAM_MIB
    if (!isSize)
      return faulty(
        `${at}.vram_mib`,
        `must be a whole number from 1 to ${MAX_VRAM_MIB}, not ${quoted(vramMib)}`,
      )
    gpus.push({ uuid, model, vramMib })
  }
  return valid(gpus)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
