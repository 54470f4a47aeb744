-- How many dead letters there are is told from the counts: those from before there were any are counted now. The lock
-- keeps others from burying until the end, so that none is counted twice or not at all.
LOCK TABLE dead_letters IN SHARE MODE;
INSERT INTO counts (what, topic_arn, messages)
SELECT 'buried', topic_arn, missing FROM (
    SELECT topic_arn, sum(letters) AS missing FROM (
        SELECT topic_arn, count(*) AS letters FROM dead_letters GROUP BY topic_arn
        UNION ALL
        SELECT topic_arn COLLATE "C", CASE what WHEN 'buried' THEN -messages ELSE messages END FROM counts
    ) AS each GROUP BY topic_arn
) AS topic WHERE missing <> 0
ON CONFLICT (what, topic_arn) DO UPDATE SET messages = counts.messages + excluded.messages;
