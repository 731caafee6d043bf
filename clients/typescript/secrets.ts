import type { SecretBody, SecretPage } from '../../controller/api/auth/secret-schema.ts'
import type { CallOptions } from './simulations.ts'
import { pathSegment, type Transport } from './transport.ts'

export function secretsOf(transport: Transport) {
  const member = (name: string) => `/secrets/${pathSegment(name)}`
  return {
    /** Your secrets by name, without their values. */
    list: async ({ signal }: CallOptions = {}) =>
      (await transport.json<SecretPage>({ method: 'GET', path: '/secrets', signal })).items,
    set: (name: string, value: string, { signal }: CallOptions = {}) =>
      transport.json<SecretBody>({ method: 'PUT', path: member(name), body: { value }, signal }),
    delete: (name: string, { signal }: CallOptions = {}) =>
      transport.json<null>({ method: 'DELETE', path: member(name), signal }),
  }
}
