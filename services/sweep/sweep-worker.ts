/** The worker process of `sim sweep`. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { runSweepTask } from './sweep-run.ts'

serveJobs(runSweepTask)
