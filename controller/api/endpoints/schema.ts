import { Type, type Static } from 'typebox'
import { RESIDENCIES } from '../../../protocol/units.ts'
import { closed, count, instantOrNull, list, oneOf, oneOfOrNull, textOrNull } from '../http/fields-schema.ts'
import { wait } from '../tasks/schema.ts'

/** GET /endpoints. */
export const EndpointsQuerySchema = closed({
  wait,
  seen: Type.Optional(
    Type.String({ maxLength: 64, description: 'Revision known to the caller; `wait` ends when it changes' }),
  ),
})
export type EndpointsQuery = Static<typeof EndpointsQuerySchema>

const ReplicaSchema = Type.Object({
  owner: Type.String(),
  name: Type.String({ description: 'Name of the task: its endpoint is /{owner}/{name}/' }),
  task_id: Type.String(),
  attempt: count('0: the task was never placed'),
  state: oneOf(['pending', 'assigned', 'running', 'unreachable']),
  residency: oneOfOrNull(RESIDENCIES, 'null: the task is not placed'),
  is_engine: Type.Boolean({
    description: 'true: the task runs an inference engine, and only its serving paths can be called',
  }),
})

export const EndpointsSchema = Type.Object(
  {
    revision: Type.String({ description: 'Changes whenever the content changes' }),
    controller_hosts: list(Type.String(), {
      description: 'Host names of the controller, which no gateway may use; `*.name`: all names below it',
    }),
    replicas: list(ReplicaSchema, {
      description: 'Open tasks with an owner and a declared http port, at most 10,000',
    }),
    tokens: list(
      Type.Object({
        id: Type.String(),
        sha256: Type.String({ description: 'SHA-256 of the whole token, hexadecimal' }),
        owner: Type.String({ description: 'Owner whose endpoints the token can call' }),
        expires_at: instantOrNull('Time of expiry; null: never'),
      }),
      { description: 'Tokens with the role `endpoint`' },
    ),
  },
  { $id: 'Endpoints', description: 'The routing table of a gateway.' },
)
export type EndpointsBody = Static<typeof EndpointsSchema>
export type ReplicaBody = EndpointsBody['replicas'][number]

/** GET /endpoints/{task_id}/address. */
export const EndpointAddressSchema = Type.Object({
  task_id: Type.String(),
  attempt: count('Attempt that listens at the address'),
  address: textOrNull('ADDRESS:PORT of the proxy of the task; null: no address'),
  detail: textOrNull('Why there is no address; null if there is one'),
})
export type EndpointAddressBody = Static<typeof EndpointAddressSchema>
