/** Changes of single fields of a container. Each returns the same object if nothing changes. */
import type { Container, EnvVar, ResourceRequirements } from '../contract/kubernetes.ts'
import { quantityBytes } from '../contract/quantity.ts'
import type { Mib } from '../../protocol/units.ts'

const BYTES_PER_MIB = 1024n * 1024n

/** Sets a variable in its place, or at the end. Of several with one name a container gets the last. */
export function withVariable(container: Container, variable: EnvVar): Container {
  const { env = [] } = container
  const place = env.findIndex(({ name }) => name === variable.name)
  if (place === -1) return { ...container, env: [...env, variable] }
  // The API server adds defaults within valueFrom: only what is meant is compared.
  const others = env.filter(({ name }, i) => i !== place && name === variable.name)
  return others.length === 0 && means(env[place] as EnvVar, variable)
    ? container
    : {
        ...container,
        env: env.flatMap((each, i) => (i === place ? [variable] : others.includes(each) ? [] : [each])),
      }
}

export function withoutVariable(container: Container, name: string): Container {
  const { env = [] } = container
  const kept = env.filter((each) => each.name !== name)
  return kept.length === env.length ? container : { ...container, env: kept }
}

function means(a: EnvVar, b: EnvVar): boolean {
  return a.value === b.value && a.valueFrom?.fieldRef?.fieldPath === b.valueFrom?.fieldRef?.fieldPath
}

/** Sets a whole-number resource as request and limit. */
export function withResource(container: Container, name: string, amount: number): Container {
  const { resources = {} } = container
  const { requests = {}, limits = {} } = resources
  // The API server writes 8000 as 8k.
  const isSet = [requests[name], limits[name]].every((each) => quantityBytes(String(each)) === BigInt(amount))
  if (isSet) return container
  const value = String(amount)
  return {
    ...container,
    resources: {
      ...resources,
      requests: { ...requests, [name]: value },
      limits: { ...limits, [name]: value },
    },
  }
}

/** Adds to the memory request and to the memory limit, as far as they exist. */
export function withMoreMemory(resources: ResourceRequirements, mib: Mib): ResourceRequirements {
  return {
    ...resources,
    ...raised('requests', resources, mib),
    ...raised('limits', resources, mib),
  }
}

function raised(
  kind: 'requests' | 'limits',
  resources: ResourceRequirements,
  mib: Mib,
): ResourceRequirements {
  const memory = resources[kind]?.['memory']
  const bytes = memory === undefined ? null : quantityBytes(String(memory))
  if (bytes === null) return {}
  const sum = bytes + BigInt(mib) * BYTES_PER_MIB
  const text = sum % BYTES_PER_MIB === 0n ? `${sum / BYTES_PER_MIB}Mi` : String(sum)
  return { [kind]: { ...resources[kind], memory: text } }
}
