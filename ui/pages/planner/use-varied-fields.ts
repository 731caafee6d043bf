/** The fields of the chosen scenario, from any source. */
import { useQuery } from '@tanstack/solid-query'
import { createMemo, type Accessor } from 'solid-js'
import type { ScenarioBody } from '../../../controller/api/simulations/scenario-schema.ts'
import { pathSegment } from '../../api/client.ts'
import type { ScenarioBodyPart } from '../../scenario/choice.ts'
import { useCluster } from '../../state/cluster.tsx'
import { variedFields, type VariedField } from './varied-fields.ts'

export function useVariedFields(chosen: Accessor<ScenarioBodyPart | null>): Accessor<readonly VariedField[]> {
  const { api } = useCluster()
  const name = (): string | undefined => chosen()?.scenario
  const text = useQuery(() => ({
    queryKey: ['scenarios', name()],
    enabled: name() !== undefined,
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<ScenarioBody>(`/scenarios/${pathSegment(name() ?? '')}`, {}, signal),
    staleTime: Infinity,
  }))
  return createMemo(() => {
    const choice = chosen()
    if (choice === null) return []
    return variedFields(choice.scenario_text ?? choice.scenario_inline ?? text.data?.text ?? null)
  })
}
