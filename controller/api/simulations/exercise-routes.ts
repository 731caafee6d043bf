/**
 * Exercises: sessions with questions and objectives, a score and a reference solution.
 */
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentDebrief, presentExercise, presentUnderWay } from './present-exercise.ts'
import { presentSimulation } from './present.ts'
import {
  AnswerBodySchema,
  DebriefSchema,
  ExercisePageSchema,
  ExercisePathSchema,
  ExerciseSchema,
  ExerciseUnderWaySchema,
} from './exercise-schema.ts'
import { SimulationPathSchema, SimulationRef } from './schema.ts'
import { ownSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const listExercises = operation(
  {
    operationId: 'listExercises',
    role: 'viewer',
    summary: 'All exercises, by name',
    description:
      'Returns titles, assignments, questions and objectives. Solutions are available only after the end ' +
      'of an exercise.',
    tags: ['simulations'],
    response: { 200: ExercisePageSchema },
  },
  ['conflict'],
)

const getExercise = operation(
  {
    operationId: 'getExercise',
    role: 'viewer',
    summary: 'One exercise',
    description: 'Returns the title, assignment, questions and objectives. The solution is not included.',
    tags: ['simulations'],
    params: ExercisePathSchema,
    response: { 200: ExerciseSchema },
  },
  ['not_found', 'conflict'],
)

const startExercise = operation(
  {
    operationId: 'startExercise',
    role: 'submitter',
    answerHeaders: ['Location'],
    summary: 'Open a paused session at the start of an exercise',
    description: 'Returns the paused session.',
    tags: ['simulations'],
    params: ExercisePathSchema,
    response: { 202: SimulationRef },
  },
  ['not_found', 'conflict', 'too_many_simulations', 'store_failed'],
)

const getExerciseUnderWay = operation(
  {
    operationId: 'getExerciseUnderWay',
    role: 'viewer',
    summary: 'Exercise of a session, with the answers and actions so far',
    description: 'After the exercise has ended, the response includes the score and the explanation.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: ExerciseUnderWaySchema },
  },
  ['not_found', 'conflict'],
)

const answerQuestion = operation(
  {
    operationId: 'answerQuestion',
    role: 'submitter',
    summary: 'Answer an exercise question',
    description: 'Repeated answers are allowed; the last one counts. The result is shown at the end.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    body: AnswerBodySchema,
    response: { 200: ExerciseUnderWaySchema },
  },
  ['not_found', 'conflict'],
)

const finishExercise = operation(
  {
    operationId: 'finishExercise',
    role: 'submitter',
    summary: 'Finish and score an exercise',
    description:
      'Runs the session to its end and closes it. The response remains available as the report of the ' +
      'session.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: DebriefSchema },
  },
  ['not_found', 'conflict'],
)

/**
 * GET /exercises and /exercises/{exercise}, POST its /start; GET /simulations/{simulation_id}/exercise, POST
 * its /answers and /finish.
 */
export function exerciseRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const simulator = () => simulatorOf(simulation)

  app.get('/exercises', { schema: listExercises }, async () => {
    const items = (await simulator().exercises()).map(presentExercise)
    return { items, next_cursor: null, total: items.length }
  })

  app.get('/exercises/:exercise', { schema: getExercise }, async ({ params }) => {
    const found = (await simulator().exercises()).find(({ name }) => name === params.exercise)
    if (found === undefined)
      throw new ApiProblem('not_found', `Exercise ${JSON.stringify(params.exercise)} not found.`)
    return presentExercise(found)
  })

  app.post('/exercises/:exercise/start', { schema: startExercise }, async (request, reply) => {
    const record = valueOf(await simulator().startExercise(request.params.exercise, callerOf(request).name))
    reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
    return presentSimulation(record)
  })

  app.get('/simulations/:simulation_id/exercise', { schema: getExerciseUnderWay }, async ({ params }) =>
    presentUnderWay(valueOf(await simulator().exercise(params.simulation_id))),
  )

  app.post('/simulations/:simulation_id/answers', { schema: answerQuestion }, async (request) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    const { question, answer } = request.body
    return presentUnderWay(valueOf(await simulator().answer(id, question, answer, callerOf(request).name)))
  })

  app.post('/simulations/:simulation_id/finish', { schema: finishExercise }, async (request) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    return presentDebrief(valueOf(await simulator().finish(id)))
  })
}
