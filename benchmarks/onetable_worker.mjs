// A worker that registers by dynamodb-onetable: `unique: true` makes guard items of its own.
// What it reads and prints is in harness.py.
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.BENCH_NODE_FOLDER}/`);
const { Table } = require("dynamodb-onetable");
const { DynamoDBClient } = require("@aws-sdk/client-dynamodb");

const HASH = "argon2$argon2id$v=19$m=102400,t=2,p=8$c29tZXNhbHQ$aGFzaA";
const option = (name) => process.argv[process.argv.indexOf(name) + 1];

const client = new DynamoDBClient({ endpoint: process.env.AWS_ENDPOINT_URL_DYNAMODB });
const cost = { requests: 0, units: 0 };
client.middlewareStack.add(
    (next) => async (args) => {
        args.input.ReturnConsumedCapacity = "TOTAL";
        cost.requests += 1;
        const { output, ...rest } = await next(args);
        for (const each of [output.ConsumedCapacity ?? []].flat()) cost.units += each.CapacityUnits;
        return { output, ...rest };
    },
    { step: "initialize" },
);

const table = new Table({
    name: "onetable-users",
    client,
    logger: false,
    timestamps: false,
    schema: {
        format: "onetable:1.1.0",
        version: "0.0.1",
        indexes: { primary: { hash: "pk", sort: "sk" } },
        models: {
            User: {
                pk: { type: String, value: "User#${id}" },
                sk: { type: String, value: "User#" },
                id: { type: String },
                userName: { type: String, unique: true },
                email: { type: String, unique: true },
                password: { type: String },
                isActive: { type: Boolean },
                isStaff: { type: Boolean },
                joinedAt: { type: String },
                version: { type: Number },
            },
        },
    },
});
const User = table.getModel("User");

// In a race, as in registrant.py, 16 callers at a time want one of ten names.
const race = option("--name").startsWith("race-");
let callers = 0;
async function register() {
    const name = race
        ? `${option("--name")}-${Math.floor(callers++ / 16) % 10}`
        : `user-${randomUUID()}`;
    try {
        await User.create({
            id: randomUUID(),
            userName: name,
            email: `${name}@example.org`,
            password: HASH,
            isActive: true,
            isStaff: false,
            joinedAt: new Date().toISOString(),
            version: 1,
        });
    } catch (error) {
        if (!race || error.code !== "UniqueError") throw error;
        return 0;
    }
    return 1;
}

if (!(await table.exists())) await table.createTable();
if (!race) await register();
console.log("ready");
for await (const _line of createInterface({ input: process.stdin })) break;

const milliseconds = [];
let left = Number(option("--operations"));
let made = 0;
Object.assign(cost, { requests: 0, units: 0 });
async function worker() {
    while (left-- > 0) {
        const began = performance.now();
        const one = await register();
        made += one;
        milliseconds.push(performance.now() - began);
    }
}
const cpu = process.cpuUsage();
const began = performance.now();
await Promise.all(Array.from({ length: Number(option("--threads")) }, worker));
const seconds = (performance.now() - began) / 1000;
const used = process.cpuUsage(cpu);
const cpu_seconds = (used.user + used.system) / 1e6;
console.log(JSON.stringify({ seconds, milliseconds, cpu_seconds, made, ...cost }));
process.exit(0);
