/** The overrides of a node as text fields, and the change that they request. Pure. */
import type { NodeBody, NodeConfigChangeBody } from '../../../controller/api/nodes/schema.ts'
import { mib, overcommitWords } from '../../format/figures.ts'
import { typedWhole } from '../../format/whole-number.ts'

/** `off` is the override 0. */
export type OvercommitMode = 'inherit' | 'value' | 'off'

export interface OverrideDraft {
  readonly overcommit: OvercommitMode
  /** Text as entered. */
  readonly percent: string
  readonly reserve: 'inherit' | 'value'
  readonly reserveMib: string
}

const LIMITS = { percent: { min: 0, max: 1000 }, reserveMib: { min: 0, max: 1_048_576 } } as const

type Settings = Pick<NodeBody, 'overcommit_vram_percent' | 'safety_reserve_mib' | 'overcommit' | 'reserve'>

export function draftOf(node: Settings): OverrideDraft {
  const percent = node.overcommit_vram_percent
  return {
    overcommit: percent === null ? 'inherit' : percent === 0 ? 'off' : 'value',
    percent: String(percent ?? node.overcommit.effective_percent),
    reserve: node.safety_reserve_mib === null ? 'inherit' : 'value',
    reserveMib: String(node.safety_reserve_mib ?? node.reserve.effective_mib),
  }
}

export type Asked =
  | { readonly ok: true; readonly change: NodeConfigChangeBody }
  | { readonly ok: false; readonly percentProblem: string | null; readonly reserveProblem: string | null }

export function changeOf(draft: OverrideDraft): Asked {
  const percent =
    draft.overcommit === 'value' ? typedWhole(draft.percent, LIMITS.percent.min, LIMITS.percent.max) : null
  const reserve =
    draft.reserve === 'value'
      ? typedWhole(draft.reserveMib, LIMITS.reserveMib.min, LIMITS.reserveMib.max)
      : null
  if (percent?.ok === false || reserve?.ok === false) {
    return {
      ok: false,
      percentProblem: percent?.ok === false ? percent.problem : null,
      reserveProblem: reserve?.ok === false ? reserve.problem : null,
    }
  }
  const overcommit = percent === null ? (draft.overcommit === 'off' ? 0 : null) : percent.value
  return {
    ok: true,
    change: {
      overcommit_vram_percent: overcommit,
      safety_reserve_mib: reserve === null ? null : reserve.value,
    },
  }
}

/** `override 20%, reserve inherits 2.0 GiB`. */
export function settingsWords(node: Settings): string {
  const { override_mib: own, effective_mib: effective } = node.reserve
  return (
    `${overcommitWords(node.overcommit.override_percent, node.overcommit.effective_percent)}, reserve ` +
    `${own === null ? 'inherits' : 'override'} ${mib(effective)}`
  )
}
