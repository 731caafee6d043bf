/**
 * Exercises: sessions with something to find out or to put right, a score, and what somebody who knows would
 * have done.
 */
import { callerOf } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../errors.ts'
import { operation } from '../operation.ts'
import { presentDebrief, presentExercise, presentUnderWay } from '../present/exercise.ts'
import { presentSimulation } from '../present/simulation.ts'
import {
  AnswerBodySchema,
  DebriefSchema,
  ExercisePageSchema,
  ExercisePathSchema,
  ExerciseSchema,
  ExerciseUnderWaySchema,
} from '../schema/exercise.ts'
import { SimulationPathSchema, SimulationRef } from '../schema/simulation.ts'
import { ownSimulation, simulatorOf, valueOf } from '../simulation-request.ts'

const listExercises = operation(
  {
    operationId: 'listExercises',
    role: 'viewer',
    summary: 'All exercises, in order of their names',
    description: 'Titles and tasks. Solutions are not part of any answer before an exercise has ended.',
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
    description: 'Title, task, questions and objectives. The solution is not part of it.',
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
    summary: 'Open a session at the beginning of an exercise, standing still',
    description: 'Answers the session, which is paused.',
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
    summary: 'The exercise that a session is, with the answers given and what was done',
    description: 'With the score and the explanation once it has ended.',
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
    summary: 'Answer a question of an exercise',
    description:
      'As often as one likes; the last answer counts. Whether it is right is told when it is over.',
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
    summary: 'Bring an exercise to its end and score it',
    description: 'Time goes on to its end first. The session is over then; the answer stays as its report.',
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
      throw new ApiProblem('not_found', `There is no exercise ${JSON.stringify(params.exercise)}.`)
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
