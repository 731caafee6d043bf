/** The worker process of `sim sweep`. */
import { serveJobs } from './serve-jobs.ts'
import { runSweepTask } from './sweep-run.ts'

serveJobs(runSweepTask)
